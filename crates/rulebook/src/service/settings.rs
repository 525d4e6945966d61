//! Reads `targets.SERVICE` of a configuration. The `settings` of the service say which keys it may have. Variables are filled in
//! elsewhere.

use super::{ServiceIndex, Setting, SettingType};
use crate::draft::{Draft, File};
use crate::problems::suggest;
use conformant_base::sorted::SortedMap;
use conformant_yaml::{Content, Member, Node};
use serde::Deserialize;

/// The settings of one target as they are configured, by key.
pub type Configured = SortedMap<String, SettingValue>;

/// A configured setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// One text.
    One(String),
    /// One text or several, of a setting with `many`.
    Many(Vec<String>),
    /// The members of a group.
    Group(SortedMap<String, String>),
}

/// One text or several.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "invalid value: expected a text in quotes, or a list of them"
)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Takes the settings of targets out of a configuration.
pub(crate) fn take_settings(
    draft: &mut Draft,
    file: &File,
    rest: &mut Node,
    index: &ServiceIndex,
    target_keys: &[&str],
) -> SortedMap<String, Configured> {
    let mut all = SortedMap::new();
    let known = index.settings();
    for target in members_mut(rest, "targets") {
        let service = index.get(&target.key);
        let Content::Map(members) = &mut target.value.content else {
            continue;
        };
        let mut configured = Configured::new();
        members.retain(|member| {
            let key: &str = &member.key;
            let setting = match service {
                Some(service) => service.setting(key),
                // The name of the target is reported later; its settings are checked as those of any service.
                None => known.iter().find(|(name, _)| *name == key).map(|(_, s)| *s),
            };
            if let Some(setting) = setting {
                if let Some(value) = configured_value(draft, file, member, setting) {
                    configured.insert(key.to_owned(), value);
                }
                return false;
            }
            if target_keys.contains(&key) {
                return true;
            }
            let owners = index
                .iter()
                .filter(|(_, other)| other.setting(key).is_some());
            let owners: Vec<&str> = owners.map(|(name, _)| name).collect();
            if owners.is_empty() {
                let settings = service.map_or(&[][..], |service| &service.settings);
                let settings = settings.iter().map(|(name, _)| name.as_str());
                let keys = target_keys.iter().copied();
                unknown_key(draft, file, member, settings.chain(keys));
            } else {
                let message = format!("`{key}` is a setting of {}", owners.join(" and "));
                let help = format!("move it to `targets.{}`, or remove it", owners[0]);
                draft.refuse(file.problem_at(member.key_span, message).help(help));
            }
            false
        });
        all.insert(target.key.to_string(), configured);
    }
    all
}

fn members_mut<'n>(node: &'n mut Node, key: &str) -> impl Iterator<Item = &'n mut Member> {
    let members: &mut [Member] = if let Content::Map(members) = &mut node.content {
        members
    } else {
        &mut []
    };
    let found = members.iter_mut().find(|member| *member.key == *key);
    let inside: &mut [Member] = match found.map(|member| &mut member.value.content) {
        Some(Content::Map(members)) => members,
        _ => &mut [],
    };
    inside.iter_mut()
}

fn unknown_key<'a>(
    draft: &mut Draft,
    file: &File,
    member: &Member,
    known: impl IntoIterator<Item = &'a str>,
) {
    let problem = file.problem_at(member.key_span, format!("unknown key `{}`", member.key));
    draft.refuse(problem.maybe_help(suggest(&member.key, known)));
}

fn configured_value(
    draft: &mut Draft,
    file: &File,
    member: &Member,
    setting: &Setting,
) -> Option<SettingValue> {
    let node = &member.value;
    if matches!(node.content, Content::Null) {
        return None;
    }
    if setting.many {
        let values = match draft.deserialize::<OneOrMany>(file, node)? {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(values) => values,
        };
        let is_choice = setting.kind == SettingType::Choice;
        let are_valid = !is_choice
            || values
                .iter()
                .all(|value| is_one_of_values(draft, file, node, setting, value));
        return are_valid.then_some(SettingValue::Many(values));
    }
    match setting.kind {
        SettingType::Group => {
            if !matches!(node.content, Content::Map(_)) {
                let problem = file.problem_at(node.span, "expected settings by name");
                draft.refuse(problem);
                return None;
            }
            let mut group = SortedMap::new();
            for inner in node.members() {
                let mut members = setting.members.iter();
                if let Some((name, member)) = members.find(|(name, _)| *name == *inner.key) {
                    // `check` rejects members of other types.
                    if let Some(SettingValue::One(value)) =
                        configured_value(draft, file, inner, member)
                    {
                        group.insert(name.clone(), value);
                    }
                } else {
                    let known = setting.members.iter().map(|(name, _)| name.as_str());
                    unknown_key(draft, file, inner, known);
                }
            }
            Some(SettingValue::Group(group))
        }
        SettingType::Choice => {
            let value = draft.deserialize::<String>(file, node)?;
            is_one_of_values(draft, file, node, setting, &value).then_some(SettingValue::One(value))
        }
        SettingType::Text | SettingType::Path => draft
            .deserialize::<String>(file, node)
            .map(SettingValue::One),
    }
}

/// Whether a choice has this value; a problem if not.
fn is_one_of_values(
    draft: &mut Draft,
    file: &File,
    node: &Node,
    setting: &Setting,
    value: &str,
) -> bool {
    let is_value = setting.values.iter().any(|known| known == value);
    if !is_value {
        let problem = file.problem_at(node.span, format!("unknown word `{value}`"));
        draft.refuse(match setting.values.split_last() {
            Some((last, [])) => problem.help(format!("expected {last}")),
            Some((last, others)) => {
                problem.help(format!("expected {} or {last}", others.join(", ")))
            }
            None => problem,
        });
    }
    is_value
}
