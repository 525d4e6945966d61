//! What the command line of a run says: its limits, its seed, its target, and the command that reproduces a finding.

use conformant_base::text;
use conformant_record::{Finding, RunRecord};
use std::collections::{BTreeMap, BTreeSet};

/// The command that reproduces a finding: a run of its scenario against the same target, or the check of its file.
///
/// A live target may keep the names of the run, so that another run needs new ones.
pub(super) fn reproduce_command(record: &RunRecord, finding: &Finding) -> Option<String> {
    let words = text::shell_words(&record.invocation);
    if words.get(1).is_some_and(|command| command != "run") {
        // Neither standard input nor the traffic of clients can be read again.
        let is_traffic = ["proxy", "serve"].contains(&words[1].as_ref());
        let reads_input = is_traffic || words.iter().any(|word| *word == "-");
        return (!reads_input).then(|| record.invocation.clone());
    }
    if finding.step == 0 || finding.scenario.is_empty() {
        return None;
    }
    Some(format!(
        "{} --filter {}",
        run_like(
            record.invocation_of(&finding.scenario),
            record.is_live(),
            record.seed
        ),
        text::shell_quoted(&finding.scenario)
    ))
}

/// The command `conformant run` with the target, settings and seed of the command line of a run or an exploration, without a
/// selection.
pub fn run_like(invocation: &str, is_live: bool, seed: u64) -> String {
    /// Flags that select scenarios, that only a whole run or exploration needs, or that the command adds itself.
    const LEFT_OUT: &str = "--filter --service --partition --since --rerun --repeat --names --min-judged \
         --keep-evidence --global-timeout --claims --shuffle --require-complete \
         --require-target --reference --budget --save --only-safe";
    let mut command = "conformant run".to_owned();
    if !is_live {
        command += " --reference";
    }
    let mut is_seeded = false;
    for (flag, words) in flags(&text::shell_words(invocation)) {
        is_seeded |= flag == "--seed";
        if !LEFT_OUT.split(' ').any(|left_out| left_out == flag) {
            for word in words {
                command = format!("{command} {}", text::shell_quoted(word));
            }
        }
    }
    if !is_seeded && seed != 0 {
        command += &format!(" --seed {seed}");
    }
    command
}

/// The command that explains a rule, a hook or another id of the rulebook of a run.
pub(super) fn explain_command(record: &RunRecord, id: &str) -> String {
    let mut command = format!("conformant explain {id}");
    let words = text::shell_words(&record.invocation);
    for (_, words) in flags(&words).iter().filter(|(flag, _)| *flag == "--specs") {
        for word in *words {
            command = format!("{command} {}", text::shell_quoted(word));
        }
    }
    command
}

/// The flags of a command line, each with the words that state it.
pub fn flags(words: &[String]) -> Vec<(&str, &[String])> {
    let is_flag = |word: &String| word.starts_with("--");
    let begins: Vec<usize> = (0..words.len()).filter(|at| is_flag(&words[*at])).collect();
    let ends = begins.iter().skip(1).copied().chain([words.len()]);
    let flags = begins.iter().zip(ends).map(|(begin, end)| {
        let words = &words[*begin..end];
        let name = words[0].split('=').next().unwrap_or_default();
        (name, words)
    });
    flags.collect()
}

/// What the command line left out of a run: `--service chat`, `--prove off`.
pub fn limits(record: &RunRecord) -> Vec<String> {
    /// Flags that make a run smaller.
    const LIMITS: &str =
        "--service --filter --partition --rerun --since --races --prove --global-timeout";
    let words = text::shell_words(&record.invocation);
    let limits = flags(&words).into_iter().map(|(flag, words)| {
        let mut words = words.to_vec();
        words[0] = words[0].replacen('=', " ", 1);
        (flag, words.join(" "))
    });
    limits
        .filter(|(flag, text)| {
            let is_whole =
                ["--prove rules", "--prove sample", "--races on"].contains(&text.as_str());
            LIMITS.split(' ').any(|limit| limit == *flag) && !is_whole
        })
        .map(|(_, text)| text)
        .collect()
}

/// The seed of a run, and the names that distinguish it where the record has them.
pub(super) fn seed(record: &RunRecord) -> String {
    match names(record) {
        _ if !record.parts.is_empty() => "of each part".to_owned(),
        Some(names) => format!("{}, names {names}", record.seed),
        None => record.seed.to_string(),
    }
}

/// The flags that repeat a whole run.
pub(super) fn repeat_flags(record: &RunRecord) -> String {
    match names(record) {
        Some(names) => format!("--seed {} --names {names}", record.seed),
        None => format!("--seed {}", record.seed),
    }
}

fn names(record: &RunRecord) -> Option<String> {
    let words = text::shell_words(&record.invocation);
    let mut flags = flags(&words).into_iter();
    let (_, words) = flags.find(|(flag, _)| *flag == "--names")?;
    let joined = words.join("=");
    Some(joined.trim_start_matches("--names=").to_owned())
}

/// What was judged: the address of the target, those of several targets, or the built-in reference.
/// `is_named` says whether `--reference` names the latter.
pub fn shown_target(targets: &BTreeMap<String, String>, is_named: bool) -> String {
    let is_reference = |url: &&String| url.as_str() == conformant_record::REFERENCE;
    if targets.values().any(|url| is_reference(&url)) {
        let why = if is_named {
            ""
        } else {
            " (no target configured)"
        };
        return format!("built-in reference{why}");
    }
    let base = |(service, url): (&String, &String)| {
        Some(
            url.trim_end_matches('/')
                .strip_suffix(&format!("/{service}"))?
                .to_owned(),
        )
    };
    let bases: BTreeSet<Option<String>> = targets.iter().map(base).collect();
    if let (2.., [Some(base)]) = (
        targets.len(),
        bases.into_iter().collect::<Vec<_>>().as_slice(),
    ) {
        return base.clone();
    }
    if let [one] = targets.values().collect::<Vec<_>>().as_slice() {
        return (*one).clone();
    }
    let each = targets
        .iter()
        .map(|(service, url)| format!("{service} {url}"));
    each.collect::<Vec<_>>().join(", ")
}

/// The target of a record; empty for files.
pub fn target_of(record: &RunRecord) -> String {
    let words = text::shell_words(&record.invocation);
    shown_target(
        &record.targets,
        words.iter().any(|word| word == "--reference"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{assert_contains, sample};

    #[test]
    fn a_finding_is_reproduced_with_the_target_and_settings_of_its_run() {
        let mut record = sample();
        let first = record.findings[0].clone();
        let mut repeated = |invocation: &str, target: &str| {
            record.invocation = invocation.to_owned();
            record.targets = [("flow".to_owned(), target.to_owned())].into();
            reproduce_command(&record, &first).expect("a command")
        };
        let live = "http://127.0.0.1:4010/flow";
        for (invocation, target, expected) in [
            (
                "conformant run",
                "reference",
                "conformant run --reference --seed 7",
            ),
            (
                "conformant run --config 'my file.yaml' --filter 'flow/*' --target=flow=http://127.0.0.1:4010/flow \
                 --hooks http://h --service flow --strict --partition hash:1/2 --shuffle --seed 9 --names 1a --claims claims.yaml",
                live,
                "conformant run --config 'my file.yaml' --target=flow=http://127.0.0.1:4010/flow --hooks http://h \
                 --strict --seed 9",
            ),
        ] {
            assert_eq!(
                repeated(invocation, target),
                format!("{expected} --filter flow/create-execution/happy")
            );
        }
        let of_file = "conformant check a.json --as flow/execution";
        assert_eq!(repeated(of_file, live), of_file);
        let mut record = sample();
        record.invocation = "conformant check - --as flow/execution".to_owned();
        assert_eq!(reproduce_command(&record, &record.findings[0]), None);
        record.invocation =
            "conformant proxy --upstream flow=http://h --max-exchanges 4".to_owned();
        assert_eq!(reproduce_command(&record, &record.findings[0]), None);
    }

    #[test]
    fn the_target_of_a_run_is_one_address_where_all_services_share_it() {
        let named = |targets: &[(&str, &str)]| {
            let targets = targets
                .iter()
                .map(|(name, url)| ((*name).to_owned(), (*url).to_owned()));
            shown_target(&targets.collect(), false)
        };
        for (targets, expected) in [
            (
                &[("chat", "reference"), ("flow", "reference")][..],
                "built-in reference (no target configured)",
            ),
            (
                &[("chat", "https://h/chat"), ("flow", "https://h/flow/")],
                "https://h",
            ),
            (
                &[("chat", "https://h/chat"), ("flow", "https://i")],
                "chat https://h/chat, flow https://i",
            ),
            (&[("flow", "https://h/flow")], "https://h/flow"),
            (&[], ""),
        ] {
            assert_eq!(named(targets), expected);
        }
    }

    #[test]
    fn limits_of_a_run_are_its_flags() {
        let mut record = sample();
        record.invocation =
            "conformant run --service chat --prove=off --races on --filter 'a[b=c d]' --names 1a"
                .to_owned();
        assert_eq!(
            limits(&record),
            ["--service chat", "--prove off", "--filter a[b=c d]"]
        );
        assert_eq!(seed(&record), "7, names 1a");
        assert_eq!(repeat_flags(&record), "--seed 7 --names 1a");
    }

    #[test]
    fn a_finding_of_a_merged_part_is_reproduced_with_the_seed_of_its_part() {
        let mut record = sample();
        let first = record.findings[0].clone();
        record.parts = vec![conformant_record::MergedPart {
            invocation: "conformant run --target flow=http://h --seed 9".to_owned(),
            scenario_ids: vec![first.scenario.clone()],
        }];
        let command = reproduce_command(&record, &first).unwrap();
        assert_contains(&command, &["--target flow=http://h --seed 9 --filter"]);
        assert_eq!(seed(&record), "of each part");
    }
}
