//! One HTML file that needs nothing else: readable without a script, filterable with it.
//!
//! Every value passes the template's escaping. The policy in the file allows its own style sheet
//! and script by hash and nothing else, so that even a mistake there could run and load nothing.

use super::Settings;
use super::view::{self, Broken};
use crate::verdict::{Finding, RunRecord};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// How many findings of one rule are shown; the rest only adds weight to the page.
const FINDINGS_MAX: usize = 20;

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let headline = view::headline(record, settings);
    let broken = view::broken(record, settings);
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The name's ending switches escaping for HTML on.
    templates
        .add_template("report.html", TEMPLATE)
        .expect("the template is well-formed");
    let template = templates.get_template("report.html").expect("just added");
    template
        .render(context! {
            style => STYLE,
            script => SCRIPT,
            style_hash => hash(STYLE),
            script_hash => hash(SCRIPT),
            conformant => headline.starts_with("conformant"),
            headline,
            targets => pairs(&record.targets),
            rule_counts => view::rule_counts(record),
            scenario_counts => pairs(&record.summary.scenarios),
            exchanges => record.summary.exchanges,
            seconds => format!("{:.2}", record.summary.seconds),
            seed => record.seed.to_string(),
            digest => record.rulebook.digest.as_str(),
            tool => format!("{} {}", record.tool.name, record.tool.version),
            broken => broken.iter().map(broken_rule).collect::<Vec<_>>(),
            not_judged => not_judged(record),
            open_points => open_points(record),
            rules => rules(record),
            scenarios => scenarios(record),
        })
        .expect("the template uses only what it is given")
}

/// A map as a list, so that the template can take each pair apart.
fn pairs<T: Clone + Into<Value>>(map: &BTreeMap<String, T>) -> Vec<Value> {
    map.iter()
        .map(|(key, value)| (key.as_str(), value.clone()).into())
        .collect()
}

fn hash(source: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(source)))
}

fn broken_rule(broken: &Broken) -> Value {
    let more = broken.findings.len().saturating_sub(FINDINGS_MAX);
    let findings = broken.findings.iter().take(FINDINGS_MAX);
    context! {
        id => broken.id,
        origin => broken.origin(),
        fails => broken.fails,
        findings => findings.map(|finding| shown(finding)).collect::<Vec<_>>(),
        more => (more > 0).then(|| view::count(more, "more finding")),
    }
}

fn shown(finding: &Finding) -> Value {
    let diff = finding.diff.lines().map(|line| {
        let class = match line.chars().next() {
            Some('-') => "del",
            Some('+') => "ins",
            _ => "same",
        };
        Value::from((class, line))
    });
    context! {
        message => finding.message.as_str(),
        place => view::place(finding),
        expected => finding.expected.as_str(),
        actual => finding.actual.as_str(),
        diff => diff.collect::<Vec<_>>(),
        reproduce => finding.reproduce.as_str(),
    }
}

fn not_judged(record: &RunRecord) -> Vec<Value> {
    let groups = view::not_judged(record).into_iter();
    groups
        .map(|(reason, ids)| {
            let ids: Vec<Value> = ids.into_iter().map(Value::from).collect();
            (reason, ids).into()
        })
        .collect()
}

fn open_points(record: &RunRecord) -> Vec<Value> {
    let points = record.open_points.iter();
    points
        .map(|point| (point.id.as_str(), point.observed.clone()).into())
        .collect()
}

fn rules(record: &RunRecord) -> Vec<Value> {
    let rules = record.rules.iter().map(|rule| {
        context! {
            verdict => view::name(rule.verdict),
            id => rule.id.as_str(),
            level => view::level(rule.level),
            source => rule.source.to_string(),
            judged => rule.judged,
            findings => rule.findings,
            reason => rule.reason.as_str(),
        }
    });
    rules.collect()
}

fn scenarios(record: &RunRecord) -> Vec<Value> {
    let scenarios = record.scenarios.iter().map(|result| {
        context! {
            verdict => view::name(result.verdict),
            id => result.id.as_str(),
            seconds => format!("{:.3}", result.seconds),
            reason => result.reason.as_str(),
        }
    });
    scenarios.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Format;
    use crate::report::sample::{HOSTILE, every_text_is, sample};

    fn rendered(record: &RunRecord) -> String {
        Format::Html.render(record, Settings::default())
    }

    /// Tags with their attributes' names, read as a browser would.
    fn tags(html: &str) -> Vec<String> {
        let body = html.replace(STYLE, "").replace(SCRIPT, "");
        let tags = body.split('<').skip(1).map(|rest| {
            let (tag, _) = rest.split_once('>').expect("every `<` opens a tag");
            let mut names = String::new();
            for (at, part) in tag.split('"').enumerate() {
                if at % 2 == 0 {
                    names.push_str(part);
                }
            }
            names
        });
        tags.collect()
    }

    #[test]
    fn a_run_reads_like_this() {
        let html = rendered(&sample());
        for part in [
            r#"<h1 class="bad">not conformant: 1 rule broken, 1 warning</h1>"#,
            "<dt>flow</dt><dd><code>http:&#x2f;&#x2f;127.0.0.1:4010&#x2f;flow</code></dd>",
            "<h3><code>flow&#x2f;execution&#x2f;status</code></h3>",
            r#"<span class="del">-  &quot;status&quot;: &quot;active&quot;</span>"#,
            r#"<td class="not-applicable">not-applicable</td>"#,
            "<tr><td>not-applicable: hook missing: end_execution</td><td><code>flow",
            "<td><code>flow&#x2f;unset-attributes</code></td><td><code>null</code>, <code>{}</code>",
        ] {
            assert!(html.contains(part), "{part}\nis missing in\n{html}");
        }
    }

    #[test]
    fn the_policy_allows_this_style_and_script_and_nothing_else() {
        let html = rendered(&sample());
        let between = |open: &str, close: &str| {
            let (_, rest) = html.split_once(open).unwrap();
            rest.split_once(close).unwrap().0.to_owned()
        };
        let (style, script) = (
            between("<style>", "</style>"),
            between("<script>", "</script>"),
        );
        let policy = format!(
            "content=\"default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; \
             form-action 'none'\"",
            hash(&style),
            hash(&script)
        )
        .replace('/', "&#x2f;");
        assert!(html.replace('/', "&#x2f;").contains(&policy), "{policy}");
        assert!(!html.contains(" style=") && !html.contains(" onclick="));
        assert!(!html.contains("src=") && !html.contains("href=") && !html.contains("url("));
    }

    #[test]
    fn hostile_texts_make_no_tag_and_no_attribute() {
        let harmless = tags(&rendered(&every_text_is("x\nx\nx\nx\nx\nx\nx")));
        for text in HOSTILE {
            // As many lines as the harmless text has, so that diffs have as many spans.
            let text = format!("{text}{}", "\nx".repeat(6 - text.matches('\n').count()));
            let html = rendered(&every_text_is(&text));
            assert_eq!(tags(&html), harmless, "{text:?}");
            assert!(
                !html.contains("<script>alert") && !html.contains("49"),
                "{text:?}"
            );
        }
    }
}
