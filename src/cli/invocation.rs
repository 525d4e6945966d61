//! The command line for a record: what decides the outcome, without the destinations of output.

/// Flags with a value that do not change the verdict.
const OUTPUT: [&str; 4] = ["--report", "--jobs", "--history", "--color"];
/// Flags without a value that do not change the verdict.
const SWITCHES: [&str; 3] = ["--verbose", "--quiet", "--timings"];

/// The command line of this process, quoted for a shell.
pub(super) fn invocation() -> String {
    let arguments = std::env::args_os().skip(1);
    words(arguments.map(|argument| argument.to_string_lossy().into_owned()))
}

fn words(arguments: impl Iterator<Item = String>) -> String {
    let mut text = "conformant".to_owned();
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
            text.push(' ');
            text.push_str(&quoted(&argument));
        }
    }
    text
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
