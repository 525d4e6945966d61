//! Merges the records of a run's partitions.
//!
//! The parts must belong together, without a scenario in two of them. What depends on the whole run is computed again:
//! an unspecified behavior that each part answers consistently, but differently from the others. Rules about a history
//! of several scenarios are judged in their part only.

use conformant_base::text;
use conformant_record::{
    ArchiveCounts, Asked, ENDED_BEFORE, Finding, Level, MergedPart, OpenPointResult, Proof,
    RuleCounts, RuleResult, RunRecord, ScenarioResult, ShownExchange, ShownPayload, Summary,
    Verdict, WaiverResult, waivers,
};
use std::collections::{BTreeMap, BTreeSet};

/// Why records cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("failed to merge: no record is given")]
    Nothing,
    /// A property that must be the same in all parts.
    #[error(
        "failed to merge record {part}: its {what} is {found}, that of the first is {expected}"
    )]
    Different {
        part: usize,
        what: &'static str,
        found: String,
        expected: String,
    },
    /// A scenario in two records.
    #[error("failed to merge record {part}: the scenario {scenario} is in an earlier one too")]
    Twice { part: usize, scenario: String },
    /// The same part in two records.
    #[error("failed to merge record {record}: it is part {part} of {of}, as an earlier one is")]
    SamePart { record: usize, part: u64, of: u64 },
    /// Missing parts.
    #[error(
        "failed to merge: no record is given of {} {} of {of}",
        if missing.len() == 1 { "part" } else { "parts" },
        numbers(missing)
    )]
    Missing {
        of: u64,
        /// The first ones.
        missing: Vec<u64>,
    },
}

impl MergeError {
    /// The record that does not fit, counted from 1.
    pub fn record(&self) -> Option<usize> {
        match self {
            Self::Different { part, .. } | Self::Twice { part, .. } => Some(*part),
            Self::SamePart { record, .. } => Some(*record),
            Self::Nothing | Self::Missing { .. } => None,
        }
    }
}

fn numbers(parts: &[u64]) -> String {
    let numbers: Vec<String> = parts.iter().map(u64::to_string).collect();
    numbers.join(", ")
}

/// Maximum number of missing parts in the message.
const MISSING_MAX: usize = 20;

/// Merges the parts of a run.
pub fn merge(parts: &[RunRecord]) -> Result<RunRecord, MergeError> {
    let Some(first) = parts.first() else {
        return Err(MergeError::Nothing);
    };
    belong_together(first, parts)?;
    all_there(parts)?;
    let mut rules: BTreeMap<String, RuleResult> = BTreeMap::new();
    let mut findings: Vec<Finding> = Vec::new();
    let mut shown = Shown::default();
    let mut exchanges = 0;
    for part in parts {
        for rule in &part.rules {
            match rules.get_mut(&rule.id) {
                Some(known) => join(known, rule),
                None => {
                    rules.insert(rule.id.clone(), rule.clone());
                }
            }
        }
        for finding in &part.findings {
            let mut finding = finding.clone();
            if finding.exchange > 0 {
                finding.exchange += exchanges;
            }
            findings.push(finding);
        }
        shown.add(part, exchanges);
        exchanges += part.summary.exchanges;
    }
    findings.sort_by(|a, b| (&a.scenario, a.step).cmp(&(&b.scenario, b.step)));
    let open_points = answers(parts);
    for point in &open_points {
        if let Some(rule) = rules.get_mut(&point.id) {
            either(rule, point, &mut findings);
        }
    }
    let mut scenarios: Vec<ScenarioResult> = parts
        .iter()
        .flat_map(|part| part.scenarios.clone())
        .collect();
    number_steps(&mut scenarios, parts);
    scenarios.sort_by(|a, b| a.id.cmp(&b.id));
    keep_cut(&mut rules, parts);
    let rules: Vec<RuleResult> = rules.into_values().collect();
    let whole = without(&["--partition"], &first.invocation);
    let are_one = parts.iter().all(|part| names(part) == names(first));
    let mut record = RunRecord {
        summary: Summary {
            rules: RuleCounts::count(&rules),
            scenarios: sum(parts),
            exchanges,
            seconds: seconds(parts),
            clock_seconds: None,
            services: collect_asked(parts),
        },
        complete: parts.iter().all(|part| part.complete),
        partition: None,
        proof: proof(parts, &rules),
        rules,
        findings,
        open_points,
        scenarios,
        exchanges: shown.exchanges.into_values().collect(),
        deliveries: shown.deliveries,
        // Computed again from the whole by the code that knows the defects.
        defects: Vec::new(),
        detection: None,
        waivers: add_waivers(parts),
        evidence: None,
        claims: None,
        // Each part has a build of its own.
        build: parts
            .iter()
            .all(|part| part.build == first.build)
            .then(|| first.build.clone())
            .flatten(),
        archive: ArchiveCounts::sum(parts.iter().filter_map(|part| part.archive.as_ref())),
        // The runs of one part are not those of another.
        repeats: None,
        parts: match are_one {
            true => Vec::new(),
            false => parts.iter().map(merged_part).collect(),
        },
        invocation: match (parts.len(), are_one) {
            (1, _) => first.invocation.clone(),
            (_, true) => whole,
            (_, false) => without(&["--seed", "--names"], &whole),
        },
        errors: errors(parts),
        quotes: parts.iter().flat_map(|part| part.quotes.clone()).collect(),
        ..first.clone()
    };
    if record.complete && is_whole(&record.invocation) {
        let unused = waivers::unused_in_all_parts(&record);
        record.errors.extend(unused);
    }
    Ok(record)
}

/// The errors of all parts, each once.
fn errors(parts: &[RunRecord]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for error in parts.iter().flat_map(|part| &part.errors) {
        if !all.contains(error) {
            all.push(error.clone());
        }
    }
    all
}

/// The seed of a run and the names that it used.
fn names(part: &RunRecord) -> (u64, Option<String>) {
    let mut words = text::shell_words(&part.invocation).into_iter();
    let named = words.find_map(|word| match word.strip_prefix("--names") {
        Some("") => Some(None),
        Some(value) => value.strip_prefix('=').map(|v| Some(v.to_owned())),
        None => None,
    });
    (
        part.seed,
        named.and_then(|value| value.or_else(|| words.next())),
    )
}

fn merged_part(part: &RunRecord) -> MergedPart {
    MergedPart {
        invocation: without(&["--partition"], &part.invocation),
        scenario_ids: part.scenarios.iter().map(|s| s.id.clone()).collect(),
    }
}

/// A command line without these flags and their values.
fn without(flags: &[&str], invocation: &str) -> String {
    let mut words = invocation.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let flag = word.split('=').next().unwrap_or_default();
        if !flags.contains(&flag) {
            kept.push(word);
        } else if !word.contains('=') {
            words.next();
        }
    }
    kept.join(" ")
}

/// Parts with live targets run in parallel: the longest one determines the time.
fn seconds(parts: &[RunRecord]) -> f64 {
    let each = parts.iter().map(|part| part.summary.seconds);
    if parts.iter().any(RunRecord::is_live) {
        each.fold(0.0, f64::max)
    } else {
        each.sum()
    }
}

/// Renumbers exchanges and callbacks of all parts.
#[derive(Default)]
pub(super) struct Shown {
    pub exchanges: BTreeMap<(usize, String), ShownExchange>,
    pub deliveries: Vec<ShownPayload>,
}

impl Shown {
    pub(super) fn add(&mut self, part: &RunRecord, before: usize) {
        for exchange in &part.exchanges {
            let mut exchange = exchange.clone();
            exchange.exchange += before;
            let key = (exchange.exchange, exchange.pointer.clone());
            self.exchanges.insert(key, exchange);
        }
        for delivery in &part.deliveries {
            let mut delivery = delivery.clone();
            if delivery.cause > 0 {
                delivery.cause += before;
            }
            self.deliveries.push(delivery);
        }
    }
}

/// Renumbers the exchanges of steps, like those of findings.
fn number_steps(scenarios: &mut [ScenarioResult], parts: &[RunRecord]) {
    let mut before = 0;
    let mut at = 0;
    for part in parts {
        for scenario in &mut scenarios[at..at + part.scenarios.len()] {
            for step in scenario.steps.iter_mut().filter(|step| step.exchange > 0) {
                step.exchange += before;
            }
        }
        at += part.scenarios.len();
        before += part.summary.exchanges;
    }
}

/// All parts had the same waivers, so that the accepted findings are added.
fn add_waivers(parts: &[RunRecord]) -> Vec<WaiverResult> {
    let mut whole: Vec<WaiverResult> = Vec::new();
    for waiver in parts.iter().flat_map(|part| &part.waivers) {
        let same = |known: &&mut WaiverResult| {
            known.rule == waiver.rule && known.pointer == waiver.pointer
        };
        match whole.iter_mut().find(same) {
            Some(known) => known.findings += waiver.findings,
            None => whole.push(waiver.clone()),
        }
    }
    whole
}

fn belong_together(first: &RunRecord, parts: &[RunRecord]) -> Result<(), MergeError> {
    type Value = fn(&RunRecord) -> String;
    let same: [(&str, Value); 6] = [
        ("rulebook digest", |run| run.rulebook.digest.clone()),
        ("target", |run| {
            let targets = run.targets.iter();
            let targets: Vec<String> = targets
                .map(|(service, url)| format!("{service}={url}"))
                .collect();
            targets.join(" ")
        }),
        // Parts on a live target may have different seeds.
        ("seed", |run| {
            let seed = (!run.is_live()).then_some(run.seed);
            seed.map_or_else(String::new, |seed| seed.to_string())
        }),
        ("tool version", |run| run.tool.version.clone()),
        ("partition", |run| {
            run.partition
                .as_ref()
                .map_or_else(|| "none".to_owned(), |p| format!("{} in {}", p.kind, p.of))
        }),
        ("selection", |run| selection(&run.invocation)),
    ];
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (n, part) in parts.iter().enumerate() {
        for (what, value) in same {
            let (found, expected) = (value(part), value(first));
            if found != expected {
                return Err(MergeError::Different {
                    part: n + 1,
                    what,
                    found,
                    expected,
                });
            }
        }
        for scenario in &part.scenarios {
            if !seen.insert(&scenario.id) {
                return Err(MergeError::Twice {
                    part: n + 1,
                    scenario: scenario.id.clone(),
                });
            }
        }
    }
    Ok(())
}

/// The flags of a command line that select scenarios. Their order is free.
fn selection(invocation: &str) -> String {
    let selected = selecting_flags(invocation);
    match selected.is_empty() {
        true => "everything".to_owned(),
        false => selected.into_iter().collect::<Vec<_>>().join(" "),
    }
}

/// Whether a run selected every scenario of its services, so that it needs each waiver that is right.
fn is_whole(invocation: &str) -> bool {
    let selected = selecting_flags(invocation);
    let mut selected = selected.iter().map(String::as_str);
    selected.all(|flag| flag.starts_with("--service ") || flag == "--races on")
}

/// The flags that select scenarios, with their values.
fn selecting_flags(invocation: &str) -> BTreeSet<String> {
    const FLAGS: &str = "--service --filter --scenarios --races --rerun --since";
    let mut words = text::shell_words(invocation).into_iter();
    let mut selected = BTreeSet::new();
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if FLAGS.split(' ').any(|known| known == flag) {
            let value = value.or_else(|| words.next()).unwrap_or_default();
            selected.insert(format!("{flag} {}", text::shell_quoted(&value)));
        }
    }
    selected
}

/// Checks that every part is present once, if the records name their part.
fn all_there(parts: &[RunRecord]) -> Result<(), MergeError> {
    let mut seen = BTreeSet::new();
    let mut of = 0;
    for (n, partition) in parts.iter().enumerate() {
        let Some(partition) = &partition.partition else {
            continue;
        };
        of = partition.of;
        if !seen.insert(partition.part) {
            return Err(MergeError::SamePart {
                record: n + 1,
                part: partition.part,
                of,
            });
        }
    }
    let missing: Vec<u64> = (1..=of)
        .filter(|part| !seen.contains(part))
        .take(MISSING_MAX)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(MergeError::Missing { of, missing })
    }
}

/// A rule that passes in some parts stays inconclusive if a part ended before a step that names it.
fn keep_cut(rules: &mut BTreeMap<String, RuleResult>, parts: &[RunRecord]) {
    let was_cut =
        |rule: &&RuleResult| rule.verdict == Verdict::Inconclusive && rule.reason == ENDED_BEFORE;
    for cut in parts.iter().flat_map(|part| &part.rules).filter(was_cut) {
        if let Some(rule) = rules.get_mut(&cut.id)
            && rule.verdict == Verdict::Pass
        {
            rule.verdict = Verdict::Inconclusive;
            rule.reason.clone_from(&cut.reason);
        }
    }
}

/// Merges two verdicts of a rule: the worst judged one, or the most specific reason.
pub(super) fn join(known: &mut RuleResult, other: &RuleResult) {
    known.judged += other.judged;
    known.findings += other.findings;
    if rank(other.verdict) < rank(known.verdict) {
        known.verdict = other.verdict;
        known.reason.clone_from(&other.reason);
        known.masked_by.clone_from(&other.masked_by);
        known.needs.clone_from(&other.needs);
    }
}

/// The first one wins.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fail => 0,
        Verdict::Waived => 1,
        Verdict::Pass => 2,
        Verdict::Open => 3,
        Verdict::Error => 4,
        Verdict::Inconclusive => 5,
        Verdict::NotApplicable => 6,
        Verdict::NotJudged => 7,
    }
}

/// Adds up the mutations. Random mutations were drawn for each part and are dropped.
fn proof(parts: &[RunRecord], rules: &[RuleResult]) -> Option<Proof> {
    let mut whole = Proof::default();
    for proof in parts.iter().map(|part| part.proof.as_ref()) {
        let proof = proof?;
        whole.mode.clone_from(&proof.mode);
        for (rule, changes) in &proof.rules {
            whole.rules.entry(rule.clone()).or_default().add(*changes);
        }
        for (service, changes) in &proof.services {
            whole
                .services
                .entry(service.clone())
                .or_default()
                .add(*changes);
        }
    }
    whole.proven = whole.rules.values().filter(|c| c.broke > 0).count();
    whole.vacuous = whole.rules.len() - whole.proven;
    let is_untried = |rule: &&RuleResult| {
        let binds = matches!(rule.level, Level::Must | Level::Should);
        binds && rule.verdict == Verdict::Pass && !whole.rules.contains_key(&rule.id)
    };
    whole.unproven = rules.iter().filter(is_untried).count();
    Some(whole)
}

pub(super) fn answers(parts: &[RunRecord]) -> Vec<OpenPointResult> {
    let mut observed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for point in parts.iter().flat_map(|part| &part.open_points) {
        let words = observed.entry(&point.id).or_default();
        words.extend(point.observed.iter().map(String::as_str));
    }
    observed
        .into_iter()
        .map(|(id, words)| {
            let known = parts
                .iter()
                .flat_map(|p| &p.open_points)
                .find(|p| p.id == id);
            OpenPointResult {
                id: id.to_owned(),
                observed: words.into_iter().map(str::to_owned).collect(),
                says: known.map(|p| p.says.clone()).unwrap_or_default(),
                treatment: known.map(|p| p.treatment.clone()).unwrap_or_default(),
            }
        })
        .collect()
}

/// A rule with the id of an unspecified behavior requires one answer in the whole run.
fn either(rule: &mut RuleResult, point: &OpenPointResult, findings: &mut Vec<Finding>) {
    findings.retain(|f| f.rule != rule.id);
    rule.findings = 0;
    if point.observed.len() < 2 {
        return;
    }
    rule.verdict = Verdict::Fail;
    rule.findings = 1;
    rule.reason.clear();
    let words = point.observed.join(", ");
    findings.push(Finding {
        rule: rule.id.clone(),
        level: Level::Must,
        service: rule.id.split('/').next().unwrap_or_default().to_owned(),
        kind: "either".to_owned(),
        expected: "one answer throughout the run".to_owned(),
        actual: point.observed.join(" and "),
        message: format!(
            "answered in {} ways within one run: {words}",
            point.observed.len()
        ),
        ..Finding::default()
    });
}

fn sum(parts: &[RunRecord]) -> BTreeMap<String, usize> {
    let mut sums = BTreeMap::new();
    for (verdict, count) in parts.iter().flat_map(|part| &part.summary.scenarios) {
        *sums.entry(verdict.clone()).or_default() += count;
    }
    sums
}

/// Requests of each service in all parts.
pub(super) fn collect_asked(parts: &[RunRecord]) -> BTreeMap<String, Asked> {
    let mut sums: BTreeMap<String, Asked> = BTreeMap::new();
    for (service, asked) in parts.iter().flat_map(|part| &part.summary.services) {
        sums.entry(service.clone()).or_default().add(*asked);
    }
    sums
}
