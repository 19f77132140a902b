//! A request that owns its texts, for work that outlives its caller.

use crate::{Attribute, Purpose, Request, SlotId};

/// A [`Request`] that owns its texts.
///
/// ```
/// use tollgate_core::{Attribute, DetachedRequest, Request};
/// let owned = DetachedRequest::of(&Request::new().with(Attribute::UserId, "42").with_custom(&[("region", "eu")]));
/// let lists = owned.lists();
/// assert_eq!(owned.request(&lists).custom, [("region", "eu")]);
/// ```
#[derive(Clone, Debug)]
pub struct DetachedRequest {
    namespace: String,
    known: Vec<(Attribute, String)>,
    custom: Vec<(String, String)>,
    cost: u64,
    costs: Vec<(String, u64)>,
    ignores_uncounted: bool,
    purpose: Purpose,
    slot: Option<SlotId>,
    priority: u8,
}

/// The lists that a [`Request`] borrows.
#[derive(Clone, Debug)]
pub struct DetachedLists<'a> {
    custom: Vec<(&'a str, &'a str)>,
    costs: Vec<(&'a str, u64)>,
}

impl DetachedRequest {
    /// A copy. A limit that the caller supplied is left out.
    pub fn of(request: &Request<'_>) -> DetachedRequest {
        let known = Attribute::ALL.into_iter();
        DetachedRequest {
            namespace: request.namespace.to_owned(),
            known: known.filter_map(|attribute| Some((attribute, request.get(attribute)?.to_owned()))).collect(),
            custom: request.custom.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cost: request.cost,
            costs: request.costs.iter().map(|(meter, amount)| ((*meter).to_owned(), *amount)).collect(),
            ignores_uncounted: request.ignores_uncounted,
            purpose: request.purpose,
            slot: request.slot,
            priority: request.priority,
        }
    }

    /// The lists for [`request`](DetachedRequest::request).
    pub fn lists(&self) -> DetachedLists<'_> {
        DetachedLists {
            custom: self.custom.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            costs: self.costs.iter().map(|(meter, amount)| (meter.as_str(), *amount)).collect(),
        }
    }

    /// The request again.
    pub fn request<'a>(&'a self, lists: &'a DetachedLists<'a>) -> Request<'a> {
        let mut request = Request::new()
            .in_namespace(&self.namespace)
            .with_custom(&lists.custom)
            .cost(self.cost)
            .with_costs(&lists.costs);
        for (attribute, value) in &self.known {
            request.set(*attribute, value);
        }
        request.ignores_uncounted = self.ignores_uncounted;
        request.purpose = self.purpose;
        request.slot = self.slot;
        request.priority = self.priority;
        request
    }
}
