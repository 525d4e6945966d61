//! Tests a service as `tests/conformance.rs`: one trial for each scenario.

use conformant::{Reference, Rulebook, Service, Target};
use libtest_mimic::{Arguments, Completion, Trial, run};

#[expect(clippy::disallowed_methods, reason = "the caller chooses the target")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (key, secret) = ("reference-api-key", "reference-api-secret");
    let target = match std::env::var("FLOW_URL") {
        Ok(url) => Target::of([Service::at("flow", &url).basic(key, secret)])?,
        Err(_) => Target::from(Reference::new()),
    };
    let trials = Rulebook::embedded()?
        .trials(&target)?
        .into_iter()
        .map(|trial| {
            Trial::ignorable_test(trial.id().to_owned(), move || {
                let outcome = trial.run()?;
                Ok(outcome
                    .not_applicable()
                    .map_or(Completion::Completed, Completion::ignored_with))
            })
        });
    run(&Arguments::from_args(), trials.collect()).exit();
}
