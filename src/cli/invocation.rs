//! The command line for a record: what decides the outcome, without the destinations of output.

use super::args::TargetArgs;
use super::config::{self, Config};
use conformant_base::text;

/// Flags with a value that do not change the verdict.
const OUTPUT: [&str; 4] = ["--report", "--jobs", "--history", "--color"];
/// Flags without a value that do not change the verdict.
const SWITCHES: [&str; 5] = ["--verbose", "-v", "--quiet", "-q", "--timings"];

/// The command line of this process, quoted for a shell.
pub(super) fn invocation() -> String {
    words(
        std::env::args_os()
            .skip(1)
            .map(|a| a.to_string_lossy().into_owned()),
    )
}

/// The same for a run or an exploration, with what it read from its environment and what it drew: configuration, targets, hooks,
/// seed and names. Each repetition of a run has names of its own. Secrets stay in the environment.
pub(super) fn of_run(on: &TargetArgs, config: &Config, seed: u64, is_repeated: bool) -> String {
    let mut line = invocation();
    let mut add = |is_given: bool, flag: &str, value: Option<String>| {
        if let Some(value) = value.filter(|_| !is_given) {
            line = format!("{line} {flag} {}", text::shell_quoted(&value));
        }
    };
    let is_given = |flag: &str| {
        let begin = format!("{flag}=");
        let mut given = std::env::args_os().map(|a| a.to_string_lossy().into_owned());
        given.any(|argument| argument == flag || argument.starts_with(&begin))
    };
    if config.settings.targets.is_empty() {
        return line;
    }
    let shown = |path: &std::path::Path| path.display().to_string();
    let specs = on.specs.specs.as_deref().map(shown);
    add(is_given("--specs"), "--specs", specs);
    let file = config::found(on.config.as_deref());
    add(is_given("--config"), "--config", file.as_deref().map(shown));
    for (service, url) in config::targets_of_environment(&config.settings.index) {
        add(
            is_given("--target"),
            "--target",
            Some(format!("{service}={url}")),
        );
    }
    add(is_given("--hooks"), "--hooks", on.hooks.clone());
    add(is_given("--seed"), "--seed", Some(seed.to_string()));
    add(
        is_given("--names") || is_repeated,
        "--names",
        Some(config.settings.names.clone()),
    );
    line
}

fn words(arguments: impl Iterator<Item = String>) -> String {
    let mut line = "conformant".to_owned();
    let mut is_value = false;
    for argument in arguments {
        if std::mem::take(&mut is_value) {
            continue;
        }
        let name = argument.split('=').next().unwrap_or_default();
        if OUTPUT.contains(&name) {
            is_value = !argument.contains('=');
            continue;
        }
        if !SWITCHES.contains(&name) {
            line.push(' ');
            line.push_str(&text::shell_quoted(&argument));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn output_flags_are_left_out() {
        let line = "run --target all=http://h --report json=x --jobs=3 --filter flow/* --report=html=y --verbose --seed 7";
        assert_eq!(
            words(line.split(' ').map(str::to_owned)),
            "conformant run --target all=http://h --filter 'flow/*' --seed 7"
        );
    }
}
