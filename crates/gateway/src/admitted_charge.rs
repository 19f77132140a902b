//! What rules charged a request that they admitted, until a server is asked. If none is, because the upstream is spared,
//! the charge is given back: a limit counts what was served, and a caller that is shed is told to come back.
//!
//! A request that holds slots or estimates has receipts, and gets back exactly what it was charged. The others were charged
//! without a receipt, which is what makes them cheap; they get back what their buckets still have in use of it. That takes
//! calls of the store just when there is too much to do, so it happens behind the response, and only so often at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate_cost::MeterAmounts;
use tollgate_identity::CallerIdentity;
use tollgate_service::{DecidedBy, Decision, HeldRequest, Service};

use crate::asked_request::AskedRequest;
use crate::cost::{CostSettlement, PricedRequest};
use crate::metrics::GatewayMetrics;
use crate::routes::CompiledRoute;
use crate::upstream::{BodyProgress, UpstreamError};

/// Most charges that are given back at once without a receipt.
const REFUNDS_MAX: usize = 256;
/// How long the store may take for one.
const REFUND_WITHIN: Duration = Duration::from_secs(1);

/// What an admitted request was charged.
#[derive(Default)]
pub(crate) struct AdmittedCharge {
    /// Its slots, if nothing is settled.
    pub(crate) held: Option<HeldRequest>,
    /// Its slots, and the amounts that are settled when it ends.
    pub(crate) settlement: Option<CostSettlement>,
    /// What was charged without a receipt; `None` if nothing was.
    unreceipted: Option<MeterAmounts>,
}

impl AdmittedCharge {
    pub(crate) fn new(
        decision: &Decision,
        mut priced: PricedRequest,
        mut held: Option<HeldRequest>,
        route: &CompiledRoute,
    ) -> AdmittedCharge {
        use DecidedBy::{Async, Lease, Local, Store};
        let settlement = priced.settlement(&mut held, &route.figures);
        // Otherwise nothing was charged, or not where a refund would look for it.
        let is_stored = matches!(decision.decided_by, Store | Lease | Async | Local);
        let has_receipts = held.is_some() || settlement.is_some();
        let is_charged = decision.is_allowed() && is_stored && !decision.rulings().is_empty() && !has_receipts;
        AdmittedCharge { held, settlement, unreceipted: is_charged.then(|| priced.into_amounts()) }
    }

    /// The request is on its way to a server.
    pub(crate) fn sent(&mut self, progress: BodyProgress) {
        if let Some(settlement) = &mut self.settlement {
            settlement.sent(progress);
        }
    }

    /// There is no response.
    pub(crate) fn failed(&mut self, error: &UpstreamError, asked: &AskedRequest<'_>, refunds: &Refunds) {
        match &mut self.settlement {
            _ if error.is_unasked() => std::mem::take(self).give_back(asked, refunds),
            Some(settlement) if error.is_unsent() => settlement.unsent(),
            _ => {}
        }
    }

    /// No server was asked: gives everything back.
    pub(crate) fn give_back(self, asked: &AskedRequest<'_>, refunds: &Refunds) {
        if let Some(settlement) = self.settlement {
            settlement.cancel();
        }
        if let Some(held) = self.held {
            held.cancel();
        }
        if let Some(amounts) = self.unreceipted {
            refunds.give_back(UnservedRequest::of(asked, amounts));
        }
    }
}

/// Gives back charges without a receipt.
pub(crate) struct Refunds {
    service: Arc<Service>,
    metrics: Arc<GatewayMetrics>,
    permits: Arc<Semaphore>,
}

impl Refunds {
    pub(crate) fn new(service: Arc<Service>, metrics: Arc<GatewayMetrics>) -> Refunds {
        Refunds { service, metrics, permits: Arc::new(Semaphore::new(REFUNDS_MAX)) }
    }

    fn give_back(&self, request: UnservedRequest) {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            return self.metrics.refunds.skipped.add_one();
        };
        let (service, metrics) = (self.service.clone(), self.metrics.clone());
        tokio::spawn(async move {
            match request.refund(&service).await {
                true => metrics.refunds.given_back.add_one(),
                false => metrics.refunds.failed.add_one(),
            }
            drop(permit);
        });
    }
}

/// A request that was charged and not served.
struct UnservedRequest {
    namespace: String,
    endpoint: String,
    host: String,
    class: String,
    caller: CallerIdentity,
    amounts: MeterAmounts,
}

impl UnservedRequest {
    fn of(asked: &AskedRequest<'_>, amounts: MeterAmounts) -> UnservedRequest {
        let AskedRequest { namespace, endpoint, host, caller, class } = *asked;
        let [namespace, endpoint, host, class] = [namespace, endpoint, host, class].map(str::to_owned);
        UnservedRequest { namespace, endpoint, host, class, caller: caller.clone(), amounts }
    }

    /// True if the store did.
    async fn refund(&self, service: &Service) -> bool {
        let UnservedRequest { namespace, endpoint, host, class, caller, amounts } = self;
        let asked = AskedRequest { namespace, endpoint, host, class, caller };
        let custom = asked.custom();
        let costs: Vec<(&str, u64)> = amounts.others().collect();
        let request = asked.charged(&custom, amounts, &costs);
        service.refund(service.clock.now(), REFUND_WITHIN, &[request]).await.is_some()
    }
}
