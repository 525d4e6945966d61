//! Checks of `service.yaml`: names, values, hooks and base paths that two services share.

use super::{APPLICATION, FILE_NAME, ServiceFile, ServiceIndex, Setting, SettingType};
use crate::draft::{Draft, File, Files};
use crate::hooks::{self, Hook};
use crate::model::{Kind, Service};
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use serde_json::Map;

/// Names that no service may have: they have another meaning in flags and texts.
const RESERVED: [&str; 3] = ["all", "people", "reference"];

/// Checks one file on its own.
pub(super) fn check_alone(draft: &mut Draft, file: &File, service: &ServiceFile) {
    let mut problem = |at: &str, message: String, help: &str| {
        draft.refuse(file.problem(at, message).help(help));
    };
    let name = file.service();
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_name || RESERVED.contains(&name) {
        problem(
            "",
            format!("invalid service name `{name}`"),
            "begin the name of the folder with a lowercase letter, followed by lowercase letters, digits and `_`; all, people and reference are reserved",
        );
    }
    for (at, text) in [
        ("/title", &service.title),
        ("/document/title", &service.document.title),
    ] {
        if text.trim().is_empty() {
            problem(at, "the title is empty".to_owned(), "write one line");
        }
    }
    if let Some(base) = &service.base
        && (!base.path.starts_with('/') || base.path.len() < 2 || base.path.ends_with('/'))
    {
        problem(
            "/base/path",
            format!("invalid base path `{}`", base.path),
            "expected `/` and a name, such as `/orders`",
        );
    }
    if service.formats.is_empty() {
        problem("/formats", "no format is listed".to_owned(), "write [json]");
    }
    for (at, pointer) in pointers(service) {
        if !pointer.starts_with('/') {
            problem(
                &at,
                format!("invalid JSON Pointer `{pointer}`"),
                "expected a pointer such as `/status`",
            );
        }
    }
    check_settings(draft, file, "/settings", &service.settings);
    for (key, setting) in &service.settings {
        let at = json::join("/settings", key);
        let hooks: Vec<(String, &str)> = setting
            .provisioned
            .iter()
            .flat_map(|made| {
                let first = ("provisioned/hook".to_owned(), made.hook.as_str());
                let then = made.then.as_deref();
                [first]
                    .into_iter()
                    .chain(then.map(|then| ("provisioned/then".to_owned(), then)))
            })
            .chain(setting.exclusive.iter().map(|exclusive| {
                let hook = exclusive.freed_by.hook.as_str();
                ("exclusive/freed-by/hook".to_owned(), hook)
            }))
            .collect();
        check_arguments(draft, file, &at, service, setting);
        for (place, hook) in hooks {
            if service.hooks.iter().all(|known| known.name != hook) {
                let known = service.hooks.iter().map(|known| known.name.as_str());
                let span = file.node.place(&format!("{at}/{place}"));
                draft.unknown(file, span, "hook of this service", hook, known);
            }
        }
        if let Some(exclusive) = &setting.exclusive
            && service.setting(&exclusive.within).is_none()
        {
            let known = service.settings.iter().map(|(key, _)| key.as_str());
            let span = file.node.place(&format!("{at}/exclusive/within"));
            draft.unknown(file, span, "setting", &exclusive.within, known);
        }
    }
    if service.signed_token.is_some() && service.setting(APPLICATION).is_none() {
        let problem = file.problem(
            "/signed-token",
            format!("the setting `{APPLICATION}` is missing"),
        );
        let help = "a signed token needs a group of the settings id, name, scheme and api_key";
        draft.refuse(problem.help(help));
    }
    for hook in &service.hooks {
        check_hook(draft, file, hook);
    }
}

/// The JSON Pointers of a service, with their place in the file.
fn pointers(service: &ServiceFile) -> Vec<(String, &str)> {
    let rejections = service.rejected_when.iter().enumerate();
    let mut all: Vec<(String, &str)> = rejections
        .map(|(n, rejection)| (format!("/rejected-when/{n}/at"), rejection.at.as_str()))
        .collect();
    for (key, setting) in &service.settings {
        let at = json::join("/settings", key);
        if let Some(exclusive) = &setting.exclusive {
            let held = &exclusive.held;
            all.extend([
                (format!("{at}/exclusive/held/at"), held.at.as_str()),
                (format!("{at}/exclusive/held/while/at"), &held.busy.at),
                (format!("{at}/exclusive/held/key"), &held.key),
                (format!("{at}/exclusive/free/at"), &exclusive.free.at),
            ]);
        }
        let found = setting.provisioned.as_ref().and_then(|p| p.found.as_ref());
        if let Some(found) = found {
            all.push((format!("{at}/provisioned/found/key"), &found.key));
            let prefer = found.prefer.iter();
            all.extend(prefer.map(|one| (format!("{at}/provisioned/found/prefer/at"), &*one.at)));
        }
    }
    all
}

/// Checks that the hooks named by a setting have the arguments and results that it names.
fn check_arguments(
    draft: &mut Draft,
    file: &File,
    at: &str,
    service: &ServiceFile,
    setting: &Setting,
) {
    let hook = |name: &str| service.hooks.iter().find(|hook| hook.name == name);
    let mut named: Vec<(&str, &str, &str, Vec<&String>)> = Vec::new();
    if let Some(made) = &setting.provisioned
        && let Some(hook) = hook(&made.hook)
    {
        let results = hook.result.iter().collect();
        named.push(("provisioned/result", "result", &made.result, results));
    }
    // The next hook is called with the result as its only argument.
    if let Some(made) = &setting.provisioned
        && let Some(next) = made.then.as_deref().and_then(hook)
        && let Some(argument) = missing_argument(next, &made.result)
    {
        let message = match argument == made.result {
            true => format!("the hook `{}` does not take `{argument}`", next.name),
            false => format!("the hook `{}` also needs `{argument}`", next.name),
        };
        let problem = file.problem(&format!("{at}/provisioned/then"), message);
        let help = format!("it is called with `{}` alone", made.result);
        draft.refuse(problem.help(help));
    }
    if let Some(freed_by) = setting.exclusive.as_ref().map(|one| &one.freed_by)
        && let Some(hook) = hook(&freed_by.hook).filter(|hook| !hook.open)
    {
        let arguments = || hook.required.iter().chain(&hook.optional).collect();
        for (place, name) in [
            ("exclusive/freed-by/scope", &freed_by.scope),
            ("exclusive/freed-by/holder", &freed_by.holder),
        ] {
            named.push((place, "argument", name, arguments()));
        }
    }
    for (place, what, name, known) in named {
        if known.iter().all(|known| *known != name) {
            let span = file.node.place(&format!("{at}/{place}"));
            let known = known.into_iter().map(String::as_str);
            draft.unknown(file, span, what, name, known);
        }
    }
}

/// Why a hook cannot be called with the given argument alone: the given one if it does not take it, or another one that it
/// requires.
fn missing_argument<'a>(hook: &'a Hook, given: &'a str) -> Option<&'a str> {
    let mut taken = hook.required.iter().chain(&hook.optional);
    if !hook.open && taken.all(|name| name != given) {
        return Some(given);
    }
    let mut required = hook.required.iter();
    required.find(|name| *name != given).map(String::as_str)
}

fn check_settings(draft: &mut Draft, file: &File, at: &str, settings: &[(String, Setting)]) {
    for (key, setting) in settings {
        let at = json::join(at, key);
        let mut problem = |message: String, help: &str| {
            draft.refuse(file.problem(&at, message).help(help));
        };
        let is_choice = setting.kind == SettingType::Choice;
        let has_values = !setting.values.is_empty();
        if is_choice != has_values {
            problem(
                format!("`values` of `{key}` does not fit its type"),
                "a `choice` lists them under `values`; other types have none",
            );
        }
        for (value, other) in &setting.stands_for {
            if !setting.values.contains(value) || !setting.values.contains(other) {
                problem(
                    format!("`stands-for` of `{key}` has a value that is not one of `values`"),
                    "list both under `values`",
                );
            }
        }
        if setting.many && setting.kind == SettingType::Group {
            problem(
                format!("the group `{key}` is a list"),
                "leave out `many`: a group has each of its members once",
            );
        }
        if let Some(default) = &setting.default
            && is_choice
            && !setting.values.contains(default)
        {
            problem(
                format!("the default `{default}` of `{key}` is not one of its values"),
                "use one of `values`",
            );
        }
        let has_members = !setting.members.is_empty();
        if (setting.kind == SettingType::Group) != has_members {
            problem(
                format!("`members` of `{key}` does not fit its type"),
                "a `group` lists its settings under `members`; other types have none",
            );
        }
        if setting.exclusive.is_some() && !setting.many {
            problem(
                format!("the exclusive setting `{key}` takes one value"),
                "write `many: true`, so that scenarios can run side by side",
            );
        }
        let members = json::join(&at, "members");
        for (name, member) in &setting.members {
            if member.kind == SettingType::Group
                || member.many
                || member.provisioned.is_some()
                || member.exclusive.is_some()
            {
                let message = format!("the member `{name}` of `{key}` does not take one value");
                let problem = file.problem(&json::join(&members, name), message);
                let help = "leave out `many`, `provisioned` and `exclusive`, and write `type: text`, `path` or `choice`";
                draft.refuse(problem.help(help));
            }
        }
        check_settings(draft, file, &members, &setting.members);
    }
}

fn check_hook(draft: &mut Draft, file: &File, hook: &Hook) {
    let at = json::join("/hooks", &hook.name);
    let is_name = !hook.name.is_empty()
        && hook
            .name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_name {
        draft.refuse(
            file.problem(&at, format!("invalid hook name `{}`", hook.name))
                .help("expected lowercase letters, digits and `_`"),
        );
    }
    let probed = hook.probe.iter().flat_map(Map::keys);
    let named = probed.map(|name| ("probe", name));
    let named = named.chain(hook.values.keys().map(|name| ("values", name)));
    for (place, name) in named {
        let mut known = hook.required.iter().chain(&hook.optional);
        if !hook.open && !known.any(|known| known == name) {
            let known = hook.required.iter().chain(&hook.optional);
            let span = file.node.place(&json::join(&format!("{at}/{place}"), name));
            draft.unknown(file, span, "argument", name, known.map(String::as_str));
        }
    }
    for (n, effect) in hook.effects.iter().enumerate() {
        let named = [
            ("key", effect.key.as_ref()),
            ("name", effect.name.as_ref()),
            ("within/key", effect.within.as_ref().map(|scope| &scope.key)),
        ];
        for (place, name) in named {
            let arguments = || hook.required.iter().chain(&hook.optional);
            let Some(name) = name else { continue };
            if !arguments().chain(&hook.result).any(|known| known == name) {
                let known = arguments().chain(&hook.result).map(String::as_str);
                let span = file.node.place(&format!("{at}/effects/{n}/{place}"));
                draft.unknown(file, span, "argument or result", name, known);
            }
        }
    }
}

/// Checks what a file shares with another one: hooks and base paths must differ, titles of one document agree.
pub(super) fn check_against_others(
    draft: &mut Draft,
    file: &File,
    service: &ServiceFile,
    index: &ServiceIndex,
) {
    let mut problem = |at: &str, message: String, help: &str| {
        draft.refuse(file.problem(at, message).help(help));
    };
    for hook in &service.hooks {
        let at = json::join("/hooks", &hook.name);
        let has_hook =
            |other: &ServiceFile| other.hooks.iter().any(|known| known.name == hook.name);
        let owner = index.files.iter().find(|(_, other)| has_hook(other));
        if let Some((owner, _)) = owner {
            problem(
                &at,
                format!("{owner} already has a hook `{}`", hook.name),
                "a hook belongs to one service; rename one of the two",
            );
        } else if hooks::built_in()
            .iter()
            .any(|known| known.name == hook.name)
        {
            problem(
                &at,
                format!("the hook `{}` is built in", hook.name),
                "rename it",
            );
        }
    }
    for (name, other) in &index.files {
        let paths = service.base.as_ref().zip(other.base.as_ref());
        if paths.is_some_and(|(base, taken)| base.path == taken.path) {
            problem(
                "/base/path",
                format!("{name} has the same base path"),
                "use a unique path for each service",
            );
        }
        let (document, known) = (&service.document, &other.document);
        if document.id == known.id && document.title != known.title {
            problem(
                "/document/title",
                format!("{name} gives the document {} another title", document.id),
                "use the same title for it everywhere",
            );
        }
    }
}

/// Checks that names in the files resolve: operations, their parameters, resource types. Embedded files that an older
/// rulebook uses are not checked.
pub(crate) fn check_names(
    draft: &mut Draft,
    files: &Files,
    is_checked: impl Fn(&str) -> bool,
    index: &ServiceIndex,
    (services, kinds): (&SortedMap<String, Service>, &SortedMap<String, Kind>),
) {
    for (name, service) in index.iter() {
        let path = format!("{name}/{FILE_NAME}");
        let Some(file) = files.get(&path).filter(|_| is_checked(&path)) else {
            continue;
        };
        let operations = services.get(name).map(|service| &service.operations);
        let operation = |draft: &mut Draft, at: &str, id: &str| {
            let found = operations.and_then(|operations| operations.get(id));
            if found.is_none() {
                let known = operations.into_iter().flat_map(SortedMap::keys);
                let span = file.node.place(at);
                draft.unknown(file, span, "operation", id, known.map(String::as_str));
            }
            found
        };
        if let Some(base) = &service.base
            && let Some(found) = operation(draft, "/base/probe/call", &base.probe.call)
        {
            if found.method != "GET" {
                let problem = file.problem(
                    "/base/probe/call",
                    format!("the probe `{}` is a {}", found.id, found.method),
                );
                let help = "name a GET operation: the probe must change nothing";
                draft.refuse(problem.help(help));
            }
            for parameter in base.probe.with.keys() {
                if found.parameters.iter().all(|p| p.name != *parameter) {
                    let known = found.parameters.iter().map(|p| p.name.as_str());
                    let span = file.node.place(&json::join("/base/probe/with", parameter));
                    draft.unknown(file, span, "parameter", parameter, known);
                }
            }
        }
        for (key, setting) in &service.settings {
            let at = json::join("/settings", key);
            let found = setting.provisioned.as_ref().and_then(|p| p.found.as_ref());
            if let Some(found) = found {
                operation(draft, &format!("{at}/provisioned/found/in"), &found.list);
            }
            if let Some(exclusive) = &setting.exclusive {
                for (place, id) in [
                    ("held/in", &exclusive.held.list),
                    ("shown-by", &exclusive.shown_by),
                ] {
                    operation(draft, &format!("{at}/exclusive/{place}"), id);
                }
                let taken_by = format!("{at}/exclusive/taken-by");
                let Some(taken_by) = operation(draft, &taken_by, &exclusive.taken_by) else {
                    continue;
                };
                for (place, name) in [
                    ("scope", &exclusive.scope),
                    ("parameter", &exclusive.parameter),
                ] {
                    let known = || taken_by.parameters.iter().map(|p| p.name.as_str());
                    if known().all(|known| known != name) {
                        let span = file.node.place(&format!("{at}/exclusive/{place}"));
                        draft.unknown(file, span, "parameter", name, known());
                    }
                }
            }
        }
        let mut named: Vec<(String, &str)> = Vec::new();
        for hook in service.hooks() {
            for (n, effect) in hook.effects.iter().enumerate() {
                let at = format!("{}/effects/{n}", json::join("/hooks", &hook.name));
                named.push((format!("{at}/kind"), &effect.kind));
                let within = effect.within.iter();
                named.extend(within.map(|scope| (format!("{at}/within/kind"), &*scope.kind)));
            }
        }
        if let Some(signed) = &service.signed_token {
            named.push(("/signed-token/token".to_owned(), &signed.token));
            named.push(("/signed-token/code".to_owned(), &signed.code));
        }
        for (at, kind) in named {
            if !kinds.contains_key(kind) {
                let known = kinds.keys().map(String::as_str);
                draft.unknown(file, file.node.place(&at), "resource type", kind, known);
            }
        }
    }
}
