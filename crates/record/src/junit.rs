//! `JUnit` XML: suites of test cases in the form that CI servers read.
//!
//! Characters that XML 1.0 forbids are removed from all texts.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::io;

/// Test cases that are shown together.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    pub name: String,
    pub properties: Vec<(&'static str, String)>,
    pub seconds: Option<f64>,
    pub cases: Vec<Case>,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// The group that a CI server lists it under.
    pub class: String,
    pub seconds: Option<f64>,
    pub status: Status,
    /// Messages of earlier attempts that failed.
    pub failed_before: Vec<String>,
    /// Output for people.
    pub output: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Status {
    Passed,
    /// It was not executed; the reason.
    Skipped(String),
    Failed(Failure),
    /// It could not be executed to its end.
    Errored(Failure),
}

/// Why a test case did not pass.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// A word for the type of failure.
    pub kind: &'static str,
    /// One line.
    pub message: String,
    /// More lines, or none.
    pub details: String,
}

/// The document for `suites`.
///
/// # Panics
/// Never: it is written into memory.
pub fn render(name: &str, seconds: Option<f64>, suites: &[Suite]) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 4);
    write(&mut writer, name, seconds, suites).expect("writing into memory succeeds");
    let mut text = String::from_utf8(writer.into_inner()).expect("only texts were written");
    text.push('\n');
    text
}

type Xml = Writer<Vec<u8>>;

fn write(xml: &mut Xml, name: &str, seconds: Option<f64>, suites: &[Suite]) -> io::Result<()> {
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |is: fn(&Status) -> bool| suites.iter().map(|suite| suite.count(is)).sum();
    // The usual schema allows the number of skipped cases in suites only.
    let tag = Tag::new("testsuites")
        .text("name", name)
        .number("tests", count(|_| true))
        .number("failures", count(|s| matches!(s, Status::Failed(_))))
        .number("errors", count(|s| matches!(s, Status::Errored(_))))
        .seconds(seconds);
    tag.around(xml, suites.is_empty(), |xml| {
        suites.iter().try_for_each(|suite| suite.write(xml))
    })
}

impl Suite {
    fn count(&self, is: fn(&Status) -> bool) -> usize {
        self.cases.iter().filter(|case| is(&case.status)).count()
    }

    fn write(&self, xml: &mut Xml) -> io::Result<()> {
        let tag = Tag::new("testsuite")
            .text("name", &self.name)
            .number("tests", self.cases.len())
            .number("skipped", self.count(|s| matches!(s, Status::Skipped(_))))
            .number("errors", self.count(|s| matches!(s, Status::Errored(_))))
            .number("failures", self.count(|s| matches!(s, Status::Failed(_))))
            .seconds(self.seconds);
        let is_empty = self.properties.is_empty() && self.cases.is_empty();
        tag.around(xml, is_empty, |xml| {
            if !self.properties.is_empty() {
                Tag::new("properties").around(xml, false, |xml| {
                    self.properties.iter().try_for_each(|(name, value)| {
                        let property = Tag::new("property").text("name", name);
                        property.text("value", value).empty(xml)
                    })
                })?;
            }
            self.cases.iter().try_for_each(|case| case.write(xml))
        })
    }
}

impl Case {
    fn write(&self, xml: &mut Xml) -> io::Result<()> {
        let tag = Tag::new("testcase")
            .text("name", &self.name)
            .text("classname", &self.class)
            .seconds(self.seconds);
        let is_passed = matches!(self.status, Status::Passed);
        let is_empty = is_passed && self.failed_before.is_empty() && self.output.is_none();
        tag.around(xml, is_empty, |xml| {
            match &self.status {
                Status::Passed => {}
                Status::Skipped(reason) => {
                    Tag::new("skipped").text("message", reason).empty(xml)?;
                }
                Status::Failed(failure) => failure.write("failure", xml)?,
                Status::Errored(failure) => failure.write("error", xml)?,
            }
            let before = if is_passed {
                "flakyFailure"
            } else {
                "rerunFailure"
            };
            for message in &self.failed_before {
                let tag = Tag::new(before).text("message", message);
                tag.text("type", "failed-before")
                    .around(xml, false, |_| Ok(()))?;
            }
            match &self.output {
                Some(output) => Tag::new("system-out").around_text(xml, output),
                None => Ok(()),
            }
        })
    }
}

impl Failure {
    fn write(&self, element: &'static str, xml: &mut Xml) -> io::Result<()> {
        let tag = Tag::new(element)
            .text("message", &self.message)
            .text("type", self.kind);
        if self.details.is_empty() {
            tag.empty(xml)
        } else {
            tag.around_text(xml, &self.details)
        }
    }
}

/// An element whose attributes are being added.
struct Tag {
    name: &'static str,
    start: BytesStart<'static>,
}

impl Tag {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            start: BytesStart::new(name),
        }
    }

    fn text(mut self, name: &str, value: &str) -> Self {
        self.start.push_attribute((name, allowed(value).as_str()));
        self
    }

    fn number(self, name: &str, value: usize) -> Self {
        self.text(name, &value.to_string())
    }

    fn seconds(self, seconds: Option<f64>) -> Self {
        match seconds {
            Some(seconds) => self.text("time", &format!("{seconds:.3}")),
            None => self,
        }
    }

    fn empty(self, xml: &mut Xml) -> io::Result<()> {
        xml.write_event(Event::Empty(self.start))
    }

    fn around(
        self,
        xml: &mut Xml,
        is_empty: bool,
        content: impl FnOnce(&mut Xml) -> io::Result<()>,
    ) -> io::Result<()> {
        if is_empty {
            return self.empty(xml);
        }
        xml.write_event(Event::Start(self.start))?;
        content(xml)?;
        xml.write_event(Event::End(BytesEnd::new(self.name)))
    }

    fn around_text(self, xml: &mut Xml, text: &str) -> io::Result<()> {
        self.around(xml, false, |xml| {
            xml.write_event(Event::Text(BytesText::new(&allowed(text))))
        })
    }
}

/// Removes characters outside of the production `Char` of XML 1.0.
fn allowed(text: &str) -> String {
    let is_allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().filter(is_allowed).collect()
}
