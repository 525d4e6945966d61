//! Runs the commands of README.md and compares their output with what it shows.

use crate::program::{Folder, Served, copy_of};
use crate::sessions::{self, Session};

fn sessions(begin: &str) -> Vec<Session> {
    let mut sessions = sessions::of("README.md");
    sessions.retain(|session| session.arguments.join(" ").starts_with(begin));
    assert!(
        !sessions.is_empty(),
        "README.md shows no `conformant {begin}`"
    );
    sessions
}

#[test]
fn the_gate() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    for session in sessions("run --target") {
        session
            .with("http://127.0.0.1:4010", &served.url)
            .run(&folder);
    }
}

#[test]
fn a_version_bump_and_fixtures() {
    let folder = Folder::new();
    copy_of(&["specs"], &folder);
    let specs = folder.join("specs");
    for session in sessions("events new") {
        let mut session = session;
        session
            .arguments
            .extend(["--specs", "specs"].map(str::to_owned));
        session.run(&folder);
    }
    // The edit that README.md describes: `attempt` is a number, and the description changes.
    let version = specs.join("events/MessageSent/5.yaml");
    let text = std::fs::read_to_string(&version).expect("it was begun");
    let edited = text
        .replacen(
            "description: A message was handed",
            "description: Another message was handed",
            1,
        )
        .replacen(
            "attempt:\n    type: [string, \"null\"]",
            "attempt:\n    type: [integer, \"null\"]",
            1,
        );
    std::fs::write(&version, edited).expect("it can be written");
    for session in sessions("diff") {
        session.run(&folder);
    }
    for session in sessions("fixtures") {
        // A million documents are meant for manual use.
        session.with("1000000", "10").run(&folder);
    }
}
