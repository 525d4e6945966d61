//! `fixtures generate --world`: accounts with related resources, as lines, a set, a recording, or seed data.
//!
//! `conformant_fixtures::world` generates them; here accounts are generated in parallel and written in order.

use super::args::{FixtureFormat, GenerateArgs};
use super::signals::Signals;
use super::{Done, Exit, Failure, load, note, of_reference};
use conformant_fixtures::export::{around_har, har_of_account};
use conformant_fixtures::world::{Account, Resource, World, WorldError};
use conformant_fixtures::{Entry, Instances, MANIFEST_VERSION, Manifest, SetError, Staged};
use conformant_net::server::{Seed, Step};
use serde_json::json;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Default number of resources.
const RESOURCES_DEFAULT: u64 = 1_000;
/// Accounts kept in memory for each thread.
const AHEAD: u64 = 4;

impl From<WorldError> for Failure {
    fn from(error: WorldError) -> Self {
        Self::Trouble(format!("failed to {error}"))
    }
}

pub(super) fn generate(args: &GenerateArgs) -> Done {
    if args.specs.specs.is_some() {
        of_reference(&load(&args.specs)?, &[], "--world")?;
    }
    let world = World {
        seed: args.seed,
        resources: args.count.unwrap_or(RESOURCES_DEFAULT),
    };
    let signals = Signals::listen()?;
    let making = Making {
        world,
        jobs: args.jobs.unwrap_or_else(super::processors).max(1) as u64,
        signals: &signals,
    };
    let to_stdout = args.out == Path::new("-");
    let done = match (args.format.unwrap_or(FixtureFormat::Ndjson), to_stdout) {
        (FixtureFormat::Ndjson, false) => making.set(args),
        (FixtureFormat::Ndjson, true) => making.stream(lines, ("", "", "")),
        (FixtureFormat::Har, true) => {
            let (before, behind) = around_har();
            making.stream(entries, (&before, ",\n", behind))
        }
        (FixtureFormat::SeedData, true) => making.stream(seeds(world), ("", "", "")),
        (FixtureFormat::Har | FixtureFormat::SeedData, false) => Err(Failure::Usage(
            "--format har and seed-data are single files: redirect standard output to a file instead of --out"
                .to_owned(),
        )),
        (FixtureFormat::Json, _) => Err(Failure::Usage(
            "--format json is not available with --world: use ndjson, har or seed-data".to_owned(),
        )),
    };
    signals.conclude(done)
}

/// One line for each resource, with its type.
fn lines(account: &Account) -> String {
    let line = |one: &Resource| json!({ "kind": one.kind, "document": one.document }).to_string();
    account
        .resources
        .iter()
        .map(|one| line(one) + "\n")
        .collect()
}

fn entries(account: &Account) -> String {
    let entries = har_of_account(account);
    let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
    entries.join(",\n")
}

/// The requests that create each account, in an instance of its own; the first uses the default instance.
fn seeds(world: World) -> impl Fn(&Account) -> String {
    move |account| {
        let changes = account
            .passed
            .iter()
            .filter(|one| one.request.method != "GET");
        let mut last = None;
        let steps = changes.map(|one| {
            let before = last.replace(one.at).unwrap_or(one.at);
            let after = one.at.duration_since(before).as_millis();
            Step::from_request(&one.request, u64::try_from(after).unwrap_or_default())
        });
        let seed = Seed {
            number: Some(world.seed_of(account.number)),
            steps: steps.collect(),
        };
        let name = match account.number {
            0 => String::new(),
            number => format!("account-{number}"),
        };
        seed.to_lines(&name)
    }
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::Trouble(format!("failed to write to standard output: {error}"))
}

struct Making<'a> {
    world: World,
    jobs: u64,
    signals: &'a Signals,
}

impl Making<'_> {
    /// Passes each account on in order, with a few in memory.
    fn for_each(
        &self,
        mut take: impl FnMut(&Account) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut number = 0;
        let accounts = self.world.accounts();
        while number < accounts {
            if self.signals.interrupted.load(Ordering::Relaxed) {
                return Err(SetError::Stopped.into());
            }
            let until = (number + self.jobs * AHEAD).min(accounts);
            for account in self.generate(number, until) {
                take(&account?)?;
            }
            number = until;
        }
        Ok(())
    }

    fn generate(&self, from: u64, until: u64) -> Vec<Result<Account, WorldError>> {
        let lane = |lane: u64| {
            let own = (from..until).filter(|number| number % self.jobs == lane);
            own.map(|number| (number, self.world.account(number)))
                .collect::<Vec<_>>()
        };
        let mut made: Vec<_> = std::thread::scope(|scope| {
            let lanes = (0..self.jobs).map(|number| scope.spawn(move || lane(number)));
            let lanes: Vec<_> = lanes.collect();
            let joined = lanes.into_iter().map(|lane| {
                lane.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.flatten().collect()
        });
        made.sort_by_key(|(number, _)| *number);
        made.into_iter().map(|(_, account)| account).collect()
    }

    /// Writes to standard output with a prefix, separators and a suffix.
    fn stream(
        &self,
        text: impl Fn(&Account) -> String,
        (before, between, behind): (&str, &str, &str),
    ) -> Done {
        let mut out = BufWriter::new(io::stdout().lock());
        let mut is_first = true;
        let mut is_gone = false;
        let mut put = |text: &str| match out.write_all(text.as_bytes()) {
            // A closed pipe is not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                is_gone = true;
                Err(SetError::Stopped.into())
            }
            other => other.map_err(|error| unwritten(&error)),
        };
        let done = put(before)
            .and_then(|()| {
                self.for_each(|account| {
                    if !std::mem::take(&mut is_first) {
                        put(between)?;
                    }
                    put(&text(account))
                })
            })
            .and_then(|()| put(behind));
        match done {
            Err(_) if is_gone => Ok(Exit::Conformant),
            Err(failure) => Err(failure),
            Ok(()) => match out.flush() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
                Err(_) | Ok(()) => Ok(Exit::Conformant),
            },
        }
    }

    /// Writes a set: one file for each type, for `fixtures verify`.
    fn set(&self, args: &GenerateArgs) -> Done {
        let rulebook = load(&args.specs)?;
        let staged = Staged::of_set(&args.out)?;
        let mut files = Instances::new(&staged);
        self.for_each(|account| {
            for one in &account.resources {
                files.add(one.kind, &one.document)?;
            }
            Ok(())
        })?;
        let fixtures: Vec<Entry> = files.finish()?;
        let count: u64 = fixtures.iter().filter_map(|entry| entry.lines).sum();
        staged.finish(&Manifest {
            schema_version: MANIFEST_VERSION,
            seed: args.seed,
            rulebook: rulebook.digest().to_owned(),
            tokens: None,
            fixtures,
        })?;
        note(&format!(
            "{}: {count} resources in {} accounts",
            args.out.display(),
            self.world.accounts()
        ));
        Ok(Exit::Conformant)
    }
}
