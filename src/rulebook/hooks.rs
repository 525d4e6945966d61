//! The hooks: what people and devices do, with the arguments that scenarios may give.
//!
//! Who carries them out is configuration; `specs/README.md` says what each one means and returns.

/// One hook.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Its name in scenarios and in the configuration.
    pub name: &'static str,
    /// Arguments that must be given.
    pub required: &'static [&'static str],
    /// Arguments that may be given.
    pub optional: &'static [&'static str],
    /// True when it takes further arguments of any name.
    pub open: bool,
}

const fn hook(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> Hook {
    Hook {
        name,
        required,
        optional,
        open: false,
    }
}

/// All hooks, in the order of `specs/README.md`.
pub const HOOKS: &[Hook] = &[
    hook("create_flow", &[], &["friendly_name"]),
    hook("publish_flow", &["flow_sid"], &[]),
    hook("end_execution", &["flow_sid", "execution_sid"], &[]),
    hook("advance_step", &["flow_sid", "execution_sid"], &[]),
    Hook {
        open: true,
        ..hook("configure_service", &["service_sid"], &[])
    },
    hook(
        "register_binding",
        &["service_sid", "identity", "binding_type", "endpoint"],
        &["device", "message_types", "credential_sid"],
    ),
    hook("set_online", &["service_sid", "identity", "online"], &[]),
    hook(
        "join_channel",
        &["service_sid", "channel_sid", "identity"],
        &[],
    ),
    hook(
        "leave_channel",
        &["service_sid", "channel_sid", "identity"],
        &[],
    ),
    hook("approve_request", &["uuid"], &[]),
    hook("deny_request", &["uuid"], &[]),
    hook(
        "announce_registration",
        &["custom_user_id"],
        &["qr", "token"],
    ),
    hook("scan_registration", &["qr"], &["cellphone", "country_code"]),
    hook("install_app", &["cellphone", "country_code"], &[]),
    hook("set_callback", &["kind", "url"], &[]),
    hook(
        "send_bulk_message",
        &["channel", "to"],
        &["tags", "scheduled", "outcome"],
    ),
    hook("collect_events", &[], &["operation_id"]),
    hook("advance_clock", &["seconds"], &[]),
    hook("lease", &["owner", "seconds"], &[]),
    hook("reset", &[], &[]),
];

/// The hook of that name.
pub fn find(name: &str) -> Option<&'static Hook> {
    HOOKS.iter().find(|hook| hook.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in the authoring guide and this list name the same hooks and arguments.
    #[test]
    fn the_guide_and_the_list_agree() {
        let guide = std::fs::read_to_string("specs/README.md").unwrap();
        for hook in HOOKS {
            let row = guide
                .lines()
                .find(|l| l.starts_with("| `") && l.contains(&format!("`{}`", hook.name)))
                .unwrap_or_else(|| panic!("{} is not in specs/README.md", hook.name));
            let arguments: Vec<String> = row
                .split('|')
                .nth(2)
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
                .flat_map(|cell| cell.split(", "))
                .map(|argument| argument.trim_matches(['`', ' ']).to_owned())
                .collect();
            for name in hook.required {
                assert!(
                    arguments.contains(&(*name).to_owned()),
                    "{}: {name}",
                    hook.name
                );
            }
            for name in hook.optional {
                assert!(
                    arguments.contains(&format!("{name}?")),
                    "{}: {name}?",
                    hook.name
                );
            }
        }
        let rows = guide.lines().skip_while(|l| !l.starts_with("## Hooks"));
        let named: usize = rows
            .take_while(|l| !l.starts_with("## Open points"))
            .filter(|l| l.starts_with("| `"))
            .map(|l| l.split('|').nth(1).unwrap().matches('`').count() / 2)
            .sum();
        assert_eq!(named, HOOKS.len());
    }
}
