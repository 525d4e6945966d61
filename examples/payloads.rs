//! Payloads of one's own types: what others send can be read, what is sent breaks no rule.

use conformant::{Rulebook, check, fixtures};
use serde::{Deserialize, Serialize};

/// What is read of an execution.
#[derive(Deserialize)]
struct Execution {
    sid: String,
    status: String,
}

/// What is sent as one, so far.
#[derive(Serialize)]
struct Answer<'a> {
    sid: &'a str,
    status: &'a str,
}

#[expect(clippy::print_stdout, reason = "an example tells what it finds")]
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
        // The fields that are missing still: a test would assert that there are none.
        let missing = checked
            .findings()
            .iter()
            .filter(|f| f.kind == "missing-field");
        println!("{}: {} fields are missing", fixture.name, missing.count());
    }
    Ok(())
}
