//! A fold that asks for every kind of order, on the word of an agent that speaks in lines:
//! `text T`, `ask` (write a message), `close`, `wake MS` (set a deadline), `again` (one more attempt after this one).

use bursar_core::decision::Start;
use bursar_core::event::{Ask, Fact};
use bursar_core::ladder::Action;
use bursar_core::notice::{AttemptEnd, Decided, Notice, What};
use bursar_core::outcome::Ending;
use bursar_core::policy::Request;
use bursar_core::{At, AttemptId, Decision, Event, MessageId, Outcome};

use crate::fold::{Begin, Fold};

pub(super) fn begin() -> Begin {
    Begin::with(|request, at| {
        let mut fold = FakeFold {
            request,
            attempt: AttemptId(0),
            line: Vec::new(),
            journal: 0,
            messages: 0,
            again: false,
            deadline: None,
            outstanding: Vec::new(),
            made: Vec::new(),
            lost: false,
        };
        fold.tell(at, What::RunStarted { prompt_bytes: 1, resume: None });
        fold.start();
        let made = std::mem::take(&mut fold.made);
        (Box::new(fold), made)
    })
}

struct FakeFold {
    request: Request,
    attempt: AttemptId,
    line: Vec<u8>,
    journal: u64,
    messages: u32,
    again: bool,
    deadline: Option<At>,
    outstanding: Vec<Decision>,
    made: Vec<Decision>,
    lost: bool,
}

impl Fold for FakeFold {
    fn apply(&mut self, at: At, event: Event<'_>) -> Vec<Decision> {
        match event {
            Event::Output { bytes, .. } => {
                for byte in bytes {
                    if *byte == b'\n' {
                        let line = String::from_utf8(std::mem::take(&mut self.line)).unwrap();
                        self.line(at, &line);
                    } else {
                        self.line.push(*byte);
                    }
                }
            }
            Event::Fact(fact) => self.fact(at, fact),
        }
        std::mem::take(&mut self.made)
    }

    fn next_deadline(&self) -> Option<At> {
        self.deadline
    }

    fn outstanding(&self) -> Vec<Decision> {
        self.outstanding.clone()
    }
}

impl FakeFold {
    fn line(&mut self, at: At, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "text" => {
                let owner = bursar_core::agent::Owner::Main;
                self.tell(at, What::Text { owner, text: rest.to_owned() });
            }
            "ask" => {
                self.decide(at, Action::Continue);
                self.write(rest);
            }
            "close" => {
                let close = Decision::CloseInput { attempt: self.attempt, offset: self.journal };
                self.order(close);
            }
            "wake" => self.deadline = Some(at.after(std::time::Duration::from_millis(rest.parse().unwrap()))),
            "again" => self.again = true,
            other => panic!("the fake agent said {other:?}"),
        }
    }

    fn fact(&mut self, at: At, fact: Fact) {
        match fact {
            Fact::Started { attempt, pid, found: _ } => {
                self.answered(|order| matches!(order, Decision::Start(_)));
                // Whether it was found depends on where a driver died.
                self.tell(at, What::AttemptStarted { attempt, pid, found: false });
            }
            Fact::Refused { attempt, .. } => {
                self.tell(at, What::AttemptEnded { attempt, end: AttemptEnd::Refused, skipped_lines: 0 });
                self.finish(Ending::Refused);
            }
            Fact::Exited { attempt, status, .. } => {
                let end = AttemptEnd::Exited(status);
                self.tell(at, What::AttemptEnded { attempt, end, skipped_lines: 0 });
                self.outstanding.clear();
                self.order(Decision::Survey { survey: 1, outputs: Vec::new() });
            }
            Fact::Vanished { attempt, rebooted, .. } => {
                let end = AttemptEnd::Vanished { rebooted };
                self.tell(at, What::AttemptEnded { attempt, end, skipped_lines: 0 });
                self.finish(Ending::Lost);
            }
            Fact::Lost { .. } => {
                if !std::mem::replace(&mut self.lost, true) {
                    self.finish(Ending::Lost);
                }
            }
            Fact::LinkChanged { link } => self.tell(at, What::LinkChanged { link }),
            Fact::PickedUp { .. } => {}
            Fact::Written { message, .. } | Fact::Undeliverable { message, .. } => {
                self.answered(|order| matches!(order, Decision::Write { message: m, .. } if *m == message));
            }
            Fact::InputClosed { .. } => self.answered(|order| matches!(order, Decision::CloseInput { .. })),
            Fact::Surveyed { .. } => {
                self.answered(|order| matches!(order, Decision::Survey { .. }));
                if std::mem::take(&mut self.again) {
                    self.start();
                } else {
                    self.decide(at, Action::Finish);
                    self.finish(Ending::Done);
                }
            }
            Fact::Stopped { .. } => {
                self.answered(|order| matches!(order, Decision::Stop { .. }));
                self.tell(at, What::Remark { text: "stopped".to_owned() });
            }
            Fact::Asked { ask: Ask::Say { text } } => self.write(&text),
            Fact::Asked { ask: Ask::Stop { now } } => {
                let stop = Decision::Stop { attempt: self.attempt, now };
                self.order(stop);
            }
            Fact::DeadlinePassed => {
                if self.deadline.is_some_and(|due| due <= at) {
                    self.deadline = None;
                    self.tell(at, What::Remark { text: "woken".to_owned() });
                    self.write("woken");
                }
            }
        }
    }

    fn start(&mut self) {
        self.attempt = AttemptId(self.attempt.0 + 1);
        self.journal = 0;
        self.line.clear();
        self.order(Decision::Start(Start {
            attempt: self.attempt,
            session: None,
            args: Vec::new(),
            env: Vec::new(),
            input: Vec::new(),
            close: false,
        }));
    }

    fn write(&mut self, text: &str) {
        let bytes = format!("{text}\n").into_bytes();
        self.messages += 1;
        let message = MessageId(format!("m{}", self.messages));
        let offset = self.journal;
        self.journal += u64::try_from(bytes.len()).unwrap();
        self.order(Decision::Write { attempt: self.attempt, message, offset, bytes });
    }

    fn finish(&mut self, ending: Ending) {
        self.outstanding.clear();
        let outcome =
            Outcome { ending, reason: "test".to_owned(), message: String::new(), hint: String::new() };
        self.made.push(Decision::Finish(Box::new(outcome)));
    }

    fn order(&mut self, decision: Decision) {
        self.outstanding.push(decision.clone());
        self.made.push(decision);
    }

    fn answered(&mut self, is: impl Fn(&Decision) -> bool) {
        self.outstanding.retain(|order| !is(order));
    }

    fn tell(&mut self, at: At, what: What) {
        self.made.push(Decision::Report(Box::new(Notice { at, what })));
    }

    fn decide(&mut self, at: At, action: Action) {
        let decided = Decided {
            run: self.request.run.0.clone(),
            host: self.request.host.clone(),
            transport: self.request.transport.clone(),
            attempt: self.attempt.0,
            reply: 1,
            action,
            reason: "test".to_owned(),
            message: format!("messages so far: {}", self.messages),
            turn_budget: 50,
            turns_spent: 1,
            turns_spent_total: 2,
            continues_used: 0,
            continues_limit: 3,
            nudges_used: 0,
            nudges_limit: 1,
            debt: 0,
            cost_usd: 0.1,
            until: None,
        };
        self.tell(at, What::Decided(Box::new(decided)));
    }
}
