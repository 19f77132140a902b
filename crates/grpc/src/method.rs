//! Which methods there are.

/// A method that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// May this request scope?
    Check,
    /// The same as Envoy asks it.
    ShouldRateLimit,
    /// May each of these?
    BatchCheck,
    /// Many checks on one stream.
    StreamChecks,
    /// A check at an estimated cost.
    Reserve,
    /// The real cost.
    Settle,
    /// A check that holds slots.
    AcquireSlot,
    /// A heartbeat for slots.
    RenewSlot,
    /// Slots come back.
    ReleaseSlot,
    /// Why would it scope?
    Explain,
    /// May calls be sent here?
    HealthCheck,
    /// The same, told again when it changes.
    HealthWatch,
    /// Which services are there?
    Reflect,
    /// The same by its older name.
    ReflectAlpha,
}

impl Method {
    /// All of them, in the order of their numbers.
    pub const ALL: [Method; 14] = [
        Method::Check,
        Method::ShouldRateLimit,
        Method::BatchCheck,
        Method::StreamChecks,
        Method::Reserve,
        Method::Settle,
        Method::AcquireSlot,
        Method::RenewSlot,
        Method::ReleaseSlot,
        Method::Explain,
        Method::HealthCheck,
        Method::HealthWatch,
        Method::Reflect,
        Method::ReflectAlpha,
    ];

    /// The path it is called by, which is its name in metrics too.
    pub const fn path(self) -> &'static str {
        match self {
            Method::Check => "/tollgate.v1.Tollgate/Check",
            Method::ShouldRateLimit => "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            Method::BatchCheck => "/tollgate.v1.Tollgate/BatchCheck",
            Method::StreamChecks => "/tollgate.v1.Tollgate/StreamChecks",
            Method::Reserve => "/tollgate.v1.Tollgate/Reserve",
            Method::Settle => "/tollgate.v1.Tollgate/Settle",
            Method::AcquireSlot => "/tollgate.v1.Tollgate/AcquireSlot",
            Method::RenewSlot => "/tollgate.v1.Tollgate/RenewSlot",
            Method::ReleaseSlot => "/tollgate.v1.Tollgate/ReleaseSlot",
            Method::Explain => "/tollgate.v1.Tollgate/Explain",
            Method::HealthCheck => "/grpc.health.v1.Health/Check",
            Method::HealthWatch => "/grpc.health.v1.Health/Watch",
            Method::Reflect => "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            Method::ReflectAlpha => "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        }
    }

    /// The method of a path. The first two are found first: they are what is called all the time.
    pub fn find(path: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.path() == path)
    }

    /// True for what anybody may ask, token or not.
    pub const fn is_public(self) -> bool {
        matches!(self, Method::HealthCheck | Method::HealthWatch)
    }

    /// True if a call may have more than one message.
    pub(super) const fn takes_many(self) -> bool {
        matches!(self, Method::StreamChecks | Method::Reflect | Method::ReflectAlpha)
    }

    /// True if a call is not over with one answer.
    pub(super) const fn lasts(self) -> bool {
        self.takes_many() || matches!(self, Method::HealthWatch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_path_and_nothing_else_is() {
        for (place, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(Method::find(method.path()), Some(method));
            assert_eq!(method as usize, place);
        }
        for path in ["", "/", "/tollgate.v1.Tollgate", "/tollgate.v1.Tollgate/check", "tollgate.v1.Tollgate/Check"] {
            assert_eq!(Method::find(path), None);
        }
    }
}
