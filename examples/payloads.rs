//! Tests the payload types of a service: they parse valid fixtures, and their output breaks no rule.

use conformant::{Rulebook, check, fixtures};
use serde::{Deserialize, Serialize};

/// The fields that this service reads.
#[derive(Deserialize)]
struct Execution {
    sid: String,
    status: String,
}

/// The fields that this service writes so far.
#[derive(Serialize)]
struct Answer<'a> {
    sid: &'a str,
    status: &'a str,
}

#[expect(clippy::print_stdout, reason = "an example prints what it finds")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rulebook = Rulebook::embedded()?;
    for fixture in fixtures(&rulebook, "flow/execution", 7)? {
        let read = serde_json::from_str::<Execution>(&fixture.text);
        let Execution { sid, status } = match (read, fixture.breaks) {
            (Ok(execution), _) => execution,
            (Err(_), Some(_)) => continue,
            (Err(why), None) => return Err(format!("{}: {why}", fixture.name).into()),
        };
        let answer = Answer {
            sid: &sid,
            status: &status,
        };
        let checked = check(&rulebook, "flow/execution", &serde_json::to_vec(&answer)?)?;
        // The fields that are still missing. A test asserts that there are none.
        let missing = checked
            .findings()
            .iter()
            .filter(|f| f.kind == "missing-field");
        println!("{}: {} fields are missing", fixture.name, missing.count());
    }
    Ok(())
}
