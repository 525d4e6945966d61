//! The hooks: what people and devices do, with the arguments that scenarios may give.
//!
//! Who carries them out is configuration; `specs/README.md` says what each one means and returns.

use super::model::Does;

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
    /// What it does to things.
    pub effects: &'static [Effect],
    /// True when anything may be different afterwards.
    pub opens_all: bool,
    /// What its result must have.
    pub result: &'static [&'static str],
}

/// What a hook does to things of one kind; where it names none, it may be any of them.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// What it does.
    pub does: Does,
    /// To things of this kind.
    pub kind: &'static str,
    /// The result or argument with the key.
    pub key: Option<&'static str>,
    /// The argument with a name of the thing.
    pub name: Option<&'static str>,
    /// What it is within: its kind, and the argument with its key.
    pub scope: Option<(&'static str, &'static str)>,
}

const fn hook(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    effects: &'static [Effect],
) -> Hook {
    Hook {
        name,
        required,
        optional,
        open: false,
        effects,
        opens_all: false,
        result: &[],
    }
}

const fn by_key(does: Does, kind: &'static str, key: &'static str) -> Effect {
    Effect {
        does,
        kind,
        key: Some(key),
        name: None,
        scope: None,
    }
}

const fn any(does: Does, kind: &'static str) -> Effect {
    Effect {
        does,
        kind,
        key: None,
        name: None,
        scope: None,
    }
}

const fn named(
    does: Does,
    kind: &'static str,
    name: &'static str,
    scope: (&'static str, &'static str),
) -> Effect {
    Effect {
        does,
        kind,
        key: None,
        name: Some(name),
        scope: Some(scope),
    }
}

const fn bringing(result: &'static [&'static str], hook: Hook) -> Hook {
    Hook { result, ..hook }
}

/// All hooks, in the order of `specs/README.md`.
pub const HOOKS: &[Hook] = &[
    bringing(
        &["flow_sid"],
        hook(
            "create_flow",
            &[],
            &["friendly_name"],
            &[by_key(Does::Makes, "flow/flow", "flow_sid")],
        ),
    ),
    hook(
        "publish_flow",
        &["flow_sid"],
        &[],
        &[by_key(Does::Changes, "flow/flow", "flow_sid")],
    ),
    hook(
        "end_execution",
        &["flow_sid", "execution_sid"],
        &[],
        &[
            by_key(Does::Changes, "flow/execution", "execution_sid"),
            any(Does::Changes, "flow/step"),
        ],
    ),
    bringing(
        &["step_sid"],
        hook(
            "advance_step",
            &["flow_sid", "execution_sid"],
            &[],
            &[
                by_key(Does::Changes, "flow/execution", "execution_sid"),
                any(Does::Changes, "flow/step"),
                by_key(Does::FindsOrMakes, "flow/step", "step_sid"),
            ],
        ),
    ),
    bringing(
        &["step_sid"],
        hook(
            "start_subflow",
            &["flow_sid", "execution_sid"],
            &[],
            &[
                by_key(Does::Changes, "flow/execution", "execution_sid"),
                any(Does::Changes, "flow/step"),
                by_key(Does::FindsOrMakes, "flow/step", "step_sid"),
            ],
        ),
    ),
    Hook {
        open: true,
        ..hook(
            "configure_service",
            &["service_sid"],
            &[],
            &[by_key(Does::Changes, "chat/service", "service_sid")],
        )
    },
    bringing(
        &["binding_sid"],
        hook(
            "register_binding",
            &["service_sid", "identity", "binding_type", "endpoint"],
            &["device", "message_types", "credential_sid"],
            &[
                any(Does::FindsOrMakes, "chat/binding"),
                any(Does::FindsOrMakes, "chat/user"),
                Effect {
                    scope: Some(("chat/service", "service_sid")),
                    ..by_key(Does::FindsOrMakes, "chat/binding", "binding_sid")
                },
            ],
        ),
    ),
    hook(
        "set_online",
        &["service_sid", "identity", "online"],
        &[],
        &[named(
            Does::Changes,
            "chat/user",
            "identity",
            ("chat/service", "service_sid"),
        )],
    ),
    hook(
        "join_channel",
        &["service_sid", "channel_sid", "identity"],
        &[],
        &[
            any(Does::FindsOrMakes, "chat/member"),
            any(Does::FindsOrMakes, "chat/user"),
            any(Does::Changes, "chat/user-channel"),
        ],
    ),
    hook(
        "leave_channel",
        &["service_sid", "channel_sid", "identity"],
        &[],
        &[
            named(
                Does::Ends,
                "chat/member",
                "identity",
                ("chat/channel", "channel_sid"),
            ),
            any(Does::Changes, "chat/user"),
            any(Does::Changes, "chat/user-channel"),
        ],
    ),
    hook(
        "approve_request",
        &["uuid"],
        &[],
        &[by_key(Does::Changes, "auth/approval-request-fetch", "uuid")],
    ),
    hook(
        "deny_request",
        &["uuid"],
        &[],
        &[by_key(Does::Changes, "auth/approval-request-fetch", "uuid")],
    ),
    hook(
        "announce_registration",
        &["custom_user_id"],
        &["qr", "token"],
        &[],
    ),
    bringing(
        &["registered"],
        hook(
            "scan_registration",
            &["qr"],
            &["cellphone", "country_code"],
            &[any(Does::FindsOrMakes, "auth/user-status")],
        ),
    ),
    hook(
        "install_app",
        &["cellphone", "country_code"],
        &[],
        &[any(Does::Changes, "auth/user-status")],
    ),
    hook(
        "change_phone",
        &["auth_id", "cellphone", "country_code"],
        &[],
        &[any(Does::Changes, "auth/user-status")],
    ),
    hook("set_callback", &["kind", "url"], &[], &[]),
    bringing(
        &["operation_id"],
        hook(
            "send_bulk_message",
            &["channel", "to"],
            &["tags", "scheduled", "outcome"],
            &[],
        ),
    ),
    bringing(
        &["events"],
        hook("collect_events", &[], &["operation_id"], &[]),
    ),
    hook("advance_clock", &["seconds"], &[], &[]),
    hook("lease", &["owner", "seconds"], &[], &[]),
    hook("call_back", &["url"], &[], &[]),
    Hook {
        opens_all: true,
        ..hook("reset", &[], &[], &[])
    },
];

/// The hook of that name.
pub fn find(name: &str) -> Option<&'static Hook> {
    HOOKS.iter().find(|hook| hook.name == name)
}

/// Whether people or devices do that to things of a kind.
pub fn does(what: Does, kind: &str) -> bool {
    let mut effects = HOOKS.iter().flat_map(|hook| hook.effects);
    effects.any(|effect| effect.does == what && effect.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in the authoring guide and this list name the same hooks and arguments.
    #[test]
    fn the_guide_and_the_list_agree() {
        let guide = conformant_specs::text("README.md");
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
