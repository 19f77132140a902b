//! An engine in this process decides.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{DetachedRequest, Span};
use tollgate_engine::{Decision, Engine, Reservation, Verdict, random, random_slot};
use tollgate_render::{HeaderFields, Media, RenderConfig, ResponseOptions, write_denial, write_headers};
use tollgate_store::Store;

use crate::answer::LimitedResponse;
use crate::backend::{Asked, LimitBackend, LimitQuestion, Limited};
use crate::hold::{AmountsFuture, HeldAmount, HeldCharges};
use crate::unclaimed::decided;

/// An engine, and how its decisions are rendered.
pub(crate) struct EmbeddedBackend<S> {
    pub(crate) engine: Arc<Engine<S>>,
    pub(crate) render: RenderConfig,
}

impl<S: Store + 'static> LimitBackend for EmbeddedBackend<S> {
    fn ask(&self, question: &LimitQuestion<'_>) -> Asked {
        let options = ResponseOptions {
            deny_by_status: Some(true),
            media: Media::accepted(question.accept),
            random: random::fast(),
            ..ResponseOptions::default()
        };
        let reports = question.reports;
        let holds = question.reserves || {
            let generation = self.engine.rules();
            generation.rules.has_slots() || generation.rules.has_queues()
        };
        if !holds {
            match self.engine.try_decide(std::slice::from_ref(&question.request)) {
                Ok(decision) => return Asked::Now(limited(&decision, &options, &self.render, reports)),
                Err(undecided) => {
                    let (engine, render) = (self.engine.clone(), self.render);
                    let owned = DetachedRequest::of(&question.request);
                    return Asked::Later(Box::pin(async move {
                        let lists = owned.lists();
                        let decision = engine.decide_later(&[owned.request(&lists)], undecided).await;
                        limited(&decision, &options, &render, reports)
                    }));
                }
            }
        }
        let (engine, render, reserves) = (self.engine.clone(), self.render, question.reserves);
        let owned = DetachedRequest::of(&question.request);
        let decision = Box::pin(async move {
            let lists = owned.lists();
            let request = owned.request(&lists).holding(random_slot());
            let (decision, reservation) = match reserves {
                true => engine.reserve(&request).await,
                false => engine.hold(&request).await,
            };
            let mut limited = limited(&decision, &options, &render, reports);
            limited.held = reservation.map(|reservation| {
                let held: Box<dyn HeldCharges> = Box::new(HeldReservation { engine: engine.clone(), reservation });
                held
            });
            limited
        });
        decided(decision, question.reserved())
    }
}

thread_local! {
    /// Fields are rendered into the same buffers again and again.
    static FIELDS: RefCell<HeaderFields> = RefCell::default();
}

fn limited(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, reports: bool) -> Limited {
    let response = FIELDS.with_borrow_mut(|fields| {
        fields.clear();
        match &decision.verdict {
            Verdict::Allow => {
                write_headers(decision, options, config, fields);
                LimitedResponse::of_fields(fields)
            }
            Verdict::Deny => {
                let mut body = Vec::with_capacity(512);
                let status = write_denial(decision, options, config, fields, &mut body);
                LimitedResponse { status, body: body.into(), ..LimitedResponse::of_fields(fields) }
            }
            // Nothing was decided: what no rule can read never passes.
            Verdict::Invalid(error) => {
                LimitedResponse::problem(400, error.code, "The request is not valid", &error.message)
            }
        }
    });
    let rule = decision.deciding_rule().filter(|_| reports).map(|(rule, _)| Box::from(rule.name.as_str()));
    let mode = match decision.verdict {
        Verdict::Invalid(_) => "malformed",
        _ => decision.decided_by.name(),
    };
    Limited {
        allowed: decision.is_allowed(),
        mode: Cow::Borrowed(mode),
        rule,
        delay: Duration::from(decision.delay()),
        response,
        held: None,
    }
}

/// A reservation of an engine.
struct HeldReservation<S> {
    engine: Arc<Engine<S>>,
    reservation: Reservation,
}

impl<S: Store + 'static> HeldCharges for HeldReservation<S> {
    fn slot_ttl(&self) -> Option<Duration> {
        self.reservation.slot_ttl().filter(|ttl| *ttl > Span::ZERO).map(Duration::from)
    }

    fn renew(self: Box<Self>) -> AmountsFuture<(Box<dyn HeldCharges>, bool)> {
        Box::pin(async move {
            // While the store is away nothing is known: the next renewal will tell.
            let is_held = self.engine.renew(&self.reservation).await.unwrap_or(true);
            let held: Box<dyn HeldCharges> = self;
            (held, is_held)
        })
    }

    fn settle(self: Box<Self>, amounts: Vec<HeldAmount>) -> AmountsFuture<()> {
        Box::pin(async move {
            let amounts: Vec<(&str, u64)> = amounts.iter().map(|(meter, amount)| (meter.as_str(), *amount)).collect();
            let HeldReservation { engine, reservation } = *self;
            // What a store does not answer stays charged as estimated, and its slots expire.
            let _ = engine.settle_costs(reservation, &amounts).await;
        })
    }
}
