//! Actions of people in flows: build, publish, answer a widget, leave.
//!
//! Every flow runs the same widgets, one of which starts a subflow: documents show no definitions.

use super::resources::{Execution, Step};
use super::{Core, Fault, Flow, Refusal, Variant};
use crate::{Done, text_arg};
use serde_json::{Value, json};
use std::time::Duration;

/// A widget and the event that leads to it.
struct Widget {
    name: &'static str,
    entered_by: &'static str,
    /// True in the subflow that the previous widget started.
    in_subflow: bool,
}

const fn widget(name: &'static str, entered_by: &'static str, in_subflow: bool) -> Widget {
    Widget {
        name,
        entered_by,
        in_subflow,
    }
}

/// The widgets in order; from the second on they repeat.
const WIDGETS: [Widget; 5] = [
    widget("welcome", "incomingRequest", false),
    widget("ask", "sent", false),
    widget("run_survey", "incomingMessage", false),
    widget("survey_question", "subflowStarted", true),
    widget("thanks", "completed", false),
];

fn widget_after(name: &str) -> &'static Widget {
    let at = WIDGETS.iter().position(|widget| widget.name == name);
    let next = at.and_then(|at| WIDGETS.get(at + 1));
    next.unwrap_or(&WIDGETS[1])
}

/// The first widget of the subflow.
fn first_of_subflow() -> &'static Widget {
    WIDGETS
        .iter()
        .find(|widget| widget.in_subflow)
        .expect("one of the widgets is in the subflow")
}

impl Flow {
    pub(super) fn create_flow(&mut self, core: &mut Core, args: &Value) -> Done {
        let name = match args.get("friendly_name") {
            None => "A flow",
            Some(_) => text_arg(args, "friendly_name")?,
        };
        if core.fails(Fault::FlowDeletedFlowReturns) {
            self.flows.iter_mut().for_each(|flow| flow.deleted = false);
        }
        let sid = self.add_flow(core, name);
        Ok(json!({"flow_sid": sid}))
    }

    pub(super) fn publish_flow(&mut self, core: &Core, args: &Value) -> Done {
        let flow = self
            .flow_mut(text_arg(args, "flow_sid")?)
            .map_err(unknown)?;
        flow.publish(core);
        let (sid, version) = (flow.sid.clone(), flow.version);
        if core.fails(Fault::FlowPublishTakesAll) {
            let others = self.flows.iter_mut().filter(|other| other.sid != sid);
            others.for_each(|other| other.publish(core));
        }
        Ok(json!({"version": version}))
    }

    pub(super) fn end_execution(&mut self, core: &Core, args: &Value) -> Done {
        let execution = self.named_execution(args)?;
        if !execution.ended {
            execution.end(core.now);
            execution.date_before_creation(core);
            if core.fails(Fault::FlowEndMovesCreation) {
                execution.created = core.now;
            }
        }
        let (sid, to) = (execution.sid.clone(), execution.to.clone());
        for other in self.siblings(args, &sid) {
            if core.fails(Fault::FlowEndEndsOthers)
                || other.to == to && core.fails(Fault::FlowEndEndsOfTo)
            {
                other.end(core.now);
            }
        }
        let all = self.flows.iter_mut().flat_map(|flow| &mut flow.executions);
        for other in all.filter(|other| other.to == to && !other.ended) {
            if core.fails(Fault::FlowEndEndsPerson) {
                other.end(core.now);
            }
        }
        Ok(json!({}))
    }

    /// The person answers: variables are set, the running step ends, the next begins.
    pub(super) fn advance_step(&mut self, core: &mut Core, args: &Value) -> Done {
        let sequence = self.next_sequence();
        let execution = self.named_execution(args)?;
        execution.check_active()?;
        execution.advance(core, sequence);
        execution.date_before_creation(core);
        let running = execution.steps.last().map(|step| step.sid.clone());
        let (sid, variables) = (execution.sid.clone(), execution.variables.clone());
        for other in self.siblings(args, &sid) {
            if core.fails(Fault::FlowVariablesShared) {
                other.variables.clone_from(&variables);
            }
        }
        Ok(json!({"step_sid": running}))
    }

    /// Fault: each running step that began a second ago ends without an answer.
    pub(super) fn end_prompts(&mut self, core: &mut Core) {
        let now = core.now;
        let executions = self.flows.iter_mut().flat_map(|flow| &mut flow.executions);
        for execution in executions.filter(|execution| !execution.ended) {
            let is_over = |step: &Step| now.duration_since(step.created).as_secs() >= 1;
            if execution.steps.last().is_some_and(is_over) {
                self.sequence += 1;
                execution.advance(core, self.sequence);
            }
        }
    }

    /// The other executions of the flow in the arguments.
    fn siblings(&mut self, args: &Value, sid: &str) -> impl Iterator<Item = &mut Execution> {
        let flow = text_arg(args, "flow_sid").and_then(|flow| self.flow_mut(flow).map_err(unknown));
        let executions = flow.ok().map(|flow| flow.executions.iter_mut());
        executions
            .into_iter()
            .flatten()
            .filter(move |other| other.sid != sid)
    }

    /// The running widget starts a subflow with its first step.
    pub(super) fn start_subflow(&mut self, core: &mut Core, args: &Value) -> Done {
        let sequence = self.next_sequence();
        let execution = self.named_execution(args)?;
        execution.check_active()?;
        execution.go_to(core, first_of_subflow(), sequence);
        execution.date_before_creation(core);
        let first = execution.steps.last();
        Ok(json!({
            "step_sid": first.map(|step| &step.sid),
            "parent_step_sid": first.and_then(|step| step.parent_step_sid.as_ref()),
        }))
    }

    /// The person enters the flow: one step is complete, the next waits for an answer.
    pub(super) fn first_steps(&mut self, core: &mut Core, execution: &mut Execution) {
        let sequence = self.next_sequence();
        execution.begin(core, &WIDGETS[0], sequence);
        if !core.varies(Variant::FlowOneStepAtFirst) {
            let sequence = self.next_sequence();
            execution.advance(core, sequence);
        }
    }

    fn named_execution(&mut self, args: &Value) -> Result<&mut Execution, String> {
        let flow = text_arg(args, "flow_sid")?;
        let execution = text_arg(args, "execution_sid")?;
        self.flow_mut(flow)
            .and_then(|flow| flow.execution_mut(execution))
            .map_err(unknown)
    }
}

impl Execution {
    fn check_active(&self) -> Result<(), String> {
        if self.ended {
            return Err("the execution has ended".to_owned());
        }
        Ok(())
    }

    /// Fault: once the execution has moved, its update is dated before its creation.
    fn date_before_creation(&mut self, core: &Core) {
        if core.fails(Fault::FlowMovedExecutionUpdatedBeforeCreated) {
            self.updated = self.created - Duration::from_secs(60);
        }
    }

    fn begin(&mut self, core: &mut Core, widget: &Widget, sequence: u64) {
        if core.varies(Variant::FlowVariablesSetAtStart) {
            let answer = json!({"inbound": {"Body": "answer"}});
            self.variables.insert(widget.name.to_owned(), answer);
        }
        let sid = core.sid("FT");
        let nowhere = core.sid("FT");
        let before = self.steps.last();
        let earlier = self.steps.iter().rev().nth(1);
        // The step that started the first subflow, if this is in a later one.
        let subflow = self
            .steps
            .iter()
            .find_map(|step| step.parent_step_sid.clone());
        let is_second = widget.in_subflow && subflow.is_some();
        let created = match self.steps.first() {
            Some(first) if first.created != core.now && core.fails(Fault::FlowStepsDatedAlike) => {
                first.created
            }
            _ => core.now,
        };
        let step = Step {
            flow_sid: self.flow_sid.clone(),
            execution_sid: match self.steps.first() {
                Some(first)
                    if self.steps.len() > 4 && core.fails(Fault::FlowSixthStepElsewhere) =>
                {
                    first.sid.replacen("FT", "FN", 1)
                }
                Some(_) | None => self.sid.clone(),
            },
            // D3, Step: the step of the widget that started the subflow, else null.
            parent_step_sid: before
                .filter(|_| {
                    if widget.in_subflow {
                        !(core.fails(Fault::FlowSubflowParentMissing)
                            || is_second && core.fails(Fault::FlowSecondSubflowParentMissing))
                    } else {
                        core.fails(Fault::FlowParentAlways)
                    }
                })
                .map(|step| {
                    if core.fails(Fault::FlowSubflowParentItself) {
                        sid.clone()
                    } else if core.fails(Fault::FlowSubflowParentUnknown) {
                        nowhere
                    } else if let Some(earlier) = earlier
                        && core.fails(Fault::FlowSubflowParentEarlier)
                    {
                        earlier.sid.clone()
                    } else if let Some(first) = &subflow
                        && is_second
                        && core.fails(Fault::FlowSecondSubflowParentFirst)
                    {
                        first.clone()
                    } else {
                        step.sid.clone()
                    }
                }),
            sid,
            sequence,
            name: widget.entered_by.to_owned(),
            widget: widget.name.to_owned(),
            context: self.context(),
            transitioned_from: before.map(|step| step.widget.clone()),
            transitioned_to: None,
            created,
            updated: None,
        };
        self.steps.push(step);
        self.updated = core.now;
    }

    fn advance(&mut self, core: &mut Core, sequence: u64) {
        let running = self.steps.last().map_or("", |step| step.widget.as_str());
        self.go_to(core, widget_after(running), sequence);
    }

    fn go_to(&mut self, core: &mut Core, next: &Widget, sequence: u64) {
        if let Some(step) = self.steps.last_mut() {
            step.transitioned_to = Some(next.name.to_owned());
            step.updated = Some(core.now);
            // D3, What the service does: variables are set at the end of a step.
            if !core.fails(Fault::FlowVariablesNeverSet) {
                let answer = json!({"inbound": {"Body": format!("answer {}", sequence)}});
                self.variables.insert(step.widget.clone(), answer);
            }
        }
        let context = self.context();
        if let Some(step) = self.steps.last_mut() {
            step.context = context;
        }
        self.begin(core, next, sequence);
    }
}

fn unknown(_: Refusal) -> String {
    "flow or execution not found".to_owned()
}
