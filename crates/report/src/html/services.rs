//! Results of a service as a bar and in words.

use super::words::thousands;
use crate::tally::{State, Tally};
use conformant_record::Asked;
use minijinja::{Value, context};

pub(super) fn service(tally: &Tally, timed: bool) -> Value {
    // Broken rules first.
    let states = [
        State::Broken,
        State::Warned,
        State::Advised,
        State::Waived,
        State::Passed,
    ];
    let decided = states.map(|state| (state.shown().class, state.noun(tally[state]), tally[state]));
    let undecided = ("not-judged", "not decided", tally.undecided());
    let say = decided
        .into_iter()
        .chain([undecided])
        .filter(|(_, _, n)| *n > 0);
    let say = say.map(|(class, word, n)| context! { class, word, said => thousands(n) });
    let say: Vec<Value> = say.collect();
    let target = tally
        .target
        .clone()
        .unwrap_or_else(|| match tally.name.as_str() {
            "events" => "received as callbacks".to_owned(),
            _ => String::new(),
        });
    context! {
        name => tally.name.as_str(), target, parts => bar(tally), say,
        scenarios => format!("{} of {} scenarios pass", tally.scenarios_passed, tally.scenarios),
        asked => tally.exchanges.map(|asked| exchanges_with(asked, timed)),
    }
}

/// Parts of a bar of width 1,000, each visible, with gaps.
pub(super) fn bar(tally: &Tally) -> Vec<Value> {
    const WIDTH: usize = 1_000;
    const GAP: usize = 2;
    const WIDTH_MIN: usize = 5;
    let parts: Vec<(State, usize)> = tally.parts().collect();
    let all = tally.rules().max(1);
    let mut widths: Vec<usize> = parts
        .iter()
        .map(|(_, n)| (n * WIDTH / all).max(WIDTH_MIN))
        .collect();
    let over = (widths.iter().sum::<usize>() + GAP * parts.len()).saturating_sub(WIDTH);
    // The widest part compensates for the minimum widths.
    if let Some(widest) = widths.iter_mut().max() {
        *widest = widest.saturating_sub(over).max(WIDTH_MIN);
    }
    let mut x = 0;
    let drawn = parts
        .into_iter()
        .zip(widths)
        .map(|((state, count), width)| {
            let at = x;
            x += width + GAP;
            let (class, word) = (state.shown().class, state.noun(count));
            context! { class, word, count, said => thousands(count), x => at, width }
        });
    drawn.collect()
}

/// `48 exchanges, 12 ms each, at most 950`; times only with a real clock.
fn exchanges_with(asked: Asked, timed: bool) -> String {
    let many = if asked.exchanges == 1 { "" } else { "s" };
    let count = format!("{} exchange{many}", thousands(asked.exchanges));
    match asked.mean_milliseconds().filter(|_| timed) {
        Some(mean) => {
            let longest = usize::try_from(asked.longest_milliseconds).unwrap_or(usize::MAX);
            format!("{count}, {mean} ms each, at most {}", thousands(longest))
        }
        None => count,
    }
}
