//! How a finding refers to requests that were sent at the same time.

use super::evidence::{Event, Evidence, Race};
use super::reproduce::curl;
use std::fmt::Write as _;

/// Numbers of requests in words, from two.
const WORDS: [&str; 7] = ["two", "three", "four", "five", "six", "seven", "eight"];

/// The number of the race that an exchange is part of, or of the last one before it. Races are numbered in order.
fn race_number(evidence: &Evidence, exchange: usize) -> Option<usize> {
    let is_it = |event: &Event| matches!(event, Event::Exchange(index) if *index == exchange);
    let place = evidence.events.iter().position(is_it)?;
    let races = evidence.events[..=place].iter();
    let races = races.filter_map(|event| race_of(evidence, event));
    races.map(|race| race.number).max()
}

fn race_of(evidence: &Evidence, event: &Event) -> Option<Race> {
    match event {
        Event::Exchange(index) => evidence.exchanges.get(*index)?.race,
        Event::Hook(call) => call.race,
        Event::Delivery(_) | Event::Passed(_) => None,
    }
}

/// What a finding at an exchange says of the requests that were sent at the same time, and the commands that send
/// them again; `None` if there were none, only one, or more than eight.
pub(super) fn description(evidence: &Evidence, exchange: usize) -> Option<(String, String)> {
    let number = race_number(evidence, exchange)?;
    let events = evidence.events.iter();
    let raced =
        events.filter(|event| race_of(evidence, event).is_some_and(|race| race.number == number));
    let (mut count, mut commands, mut is_own) = (0_usize, String::new(), false);
    for event in raced {
        count += 1;
        match event {
            Event::Exchange(index) => {
                is_own |= *index == exchange;
                let _ = writeln!(commands, "{} &", curl(&evidence.exchanges[*index]));
            }
            Event::Hook(call) => {
                let _ = writeln!(
                    commands,
                    "# at the same time: hook {} {}",
                    call.name, call.arguments
                );
            }
            Event::Delivery(_) | Event::Passed(_) => {}
        }
    }
    commands.push_str("wait");
    if !is_own {
        let _ = write!(commands, "\n{}", curl(&evidence.exchanges[exchange]));
    }
    let word = WORDS.get(count.checked_sub(2)?)?;
    let place = if is_own { "of" } else { "after" };
    Some((
        format!("{place} {word} requests sent at the same time"),
        commands,
    ))
}

#[cfg(test)]
mod tests {
    use super::description;
    use crate::examples::Example;
    use serde_json::json;

    #[test]
    fn findings_name_the_requests_at_the_same_time_and_their_commands() {
        let scene = Example::for_rule("chat", json!({}))
            .shown("create-service", json!({"sid": "IS0"}))
            .shown("create-channel", json!({"sid": "CH1"}))
            .shown("create-channel", json!({"sid": "CH2"}))
            .raced(2)
            .shown("fetch-service", json!({"sid": "IS0"}));
        let evidence = scene.passes().evidence;
        assert_eq!(description(&evidence, 0), None);
        let (says, commands) = description(&evidence, 1).unwrap();
        assert_eq!(says, "of two requests sent at the same time");
        assert_eq!(commands.lines().count(), 3);
        let (says, commands) = description(&evidence, 3).unwrap();
        assert_eq!(says, "after two requests sent at the same time");
        assert_eq!(commands.lines().count(), 4, "{commands}");
        assert_eq!(commands.matches(" &\n").count(), 2);
    }
}
