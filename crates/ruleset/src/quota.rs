//! The period of a quota at the time of a request.

use tollgate_calendar::{Anchor, Calendar, TimeZone, bounds_at};
use tollgate_core::{Limit, Quota, Time};

use super::attributes::AttrId;

/// A compiled quota.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompiledQuota {
    /// The calendar of clients without one.
    pub(super) calendar: Calendar,
    pub(super) rollover: u32,
    pub(super) overdraft: u32,
    /// Attributes with the calendar of the client, where the key of the rule identifies one: clients that share a bucket
    /// share its periods.
    pub(super) of_client: Option<CalendarAttributes>,
    /// Attributes with the calendar of the organisation, where the key identifies a client or an organisation.
    pub(super) of_org: Option<CalendarAttributes>,
}

/// The attributes of a directory that hold a calendar.
#[derive(Clone, Copy, Debug)]
pub(super) struct CalendarAttributes {
    pub(super) time_zone: AttrId,
    pub(super) anchor: AttrId,
}

impl CompiledQuota {
    /// The quota of `limit`, which holds the amount, for the period that contains `wall`. `value_of` returns attributes
    /// of the client, `granted` the units granted to it in the period that begins at an instant.
    pub(super) fn at<'v>(
        &self,
        limit: Limit,
        value_of: impl Fn(AttrId) -> Option<&'v str>,
        granted: impl Fn(Time) -> u64,
        wall: Time,
    ) -> Limit {
        let Limit::Quota(quota) = limit else { return limit };
        let amount = quota.amount();
        let part = |percent: u32| u64::try_from(u128::from(amount) * u128::from(percent) / 100).unwrap_or(u64::MAX);
        let known = |which: fn(&CalendarAttributes) -> AttrId| {
            let owners = [&self.of_client, &self.of_org].into_iter().flatten();
            owners.map(which).find_map(&value_of)
        };
        let calendar =
            self.calendar_of(known(|attributes| attributes.time_zone), known(|attributes| attributes.anchor));
        let bounds = bounds_at(calendar, wall);
        let dated = Quota::new(amount, bounds.start, bounds.end, bounds.next_end).unwrap_or(quota);
        let dated = dated.with_overdraft(part(self.overdraft)).with_rollover(part(self.rollover));
        Limit::Quota(dated.with_grant(granted(dated.start())))
    }

    /// The client's own calendar where it has one; its zone and its anchor count each by itself. What a directory holds
    /// and no calendar can be, the rule decides.
    fn calendar_of(&self, zone: Option<&str>, anchor: Option<&str>) -> Calendar {
        if zone.is_none() && anchor.is_none() {
            return self.calendar;
        }
        let zone = zone.and_then(TimeZone::find).unwrap_or_else(|| self.calendar.zone());
        let anchor = anchor.and_then(|text| Anchor::find(self.calendar.every(), text));
        Calendar::new(anchor.unwrap_or_else(|| self.calendar.anchor()), zone)
    }
}
