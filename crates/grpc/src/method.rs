//! The methods that this server implements.

/// A gRPC method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcMethod {
    /// Decides one request.
    Check,
    /// Envoy's rate limit service.
    ShouldRateLimit,
    /// Decides several requests.
    BatchCheck,
    /// Decides a stream of requests.
    StreamChecks,
    /// Charges estimated amounts and takes slots.
    Reserve,
    /// Charges the next step of a reservation.
    Extend,
    /// Replaces the estimates by the real amounts.
    Settle,
    /// Acquires concurrency slots.
    AcquireSlot,
    /// Extends the lifetime of slots.
    RenewSlot,
    /// Releases slots.
    ReleaseSlot,
    /// Explains how the rules evaluate a request.
    Explain,
    /// Serving status.
    HealthCheck,
    /// Serving status, sent again after every change.
    HealthWatch,
    /// Server reflection, v1.
    Reflect,
    /// Server reflection, v1alpha.
    ReflectAlpha,
}

impl GrpcMethod {
    /// All methods, in the order of their discriminants.
    pub const ALL: [GrpcMethod; 15] = [
        GrpcMethod::Check,
        GrpcMethod::ShouldRateLimit,
        GrpcMethod::BatchCheck,
        GrpcMethod::StreamChecks,
        GrpcMethod::Reserve,
        GrpcMethod::Extend,
        GrpcMethod::Settle,
        GrpcMethod::AcquireSlot,
        GrpcMethod::RenewSlot,
        GrpcMethod::ReleaseSlot,
        GrpcMethod::Explain,
        GrpcMethod::HealthCheck,
        GrpcMethod::HealthWatch,
        GrpcMethod::Reflect,
        GrpcMethod::ReflectAlpha,
    ];

    /// The request path, also the `method` label in metrics.
    pub const fn path(self) -> &'static str {
        match self {
            GrpcMethod::Check => "/tollgate.v1.Tollgate/Check",
            GrpcMethod::ShouldRateLimit => "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            GrpcMethod::BatchCheck => "/tollgate.v1.Tollgate/BatchCheck",
            GrpcMethod::StreamChecks => "/tollgate.v1.Tollgate/StreamChecks",
            GrpcMethod::Reserve => "/tollgate.v1.Tollgate/Reserve",
            GrpcMethod::Extend => "/tollgate.v1.Tollgate/Extend",
            GrpcMethod::Settle => "/tollgate.v1.Tollgate/Settle",
            GrpcMethod::AcquireSlot => "/tollgate.v1.Tollgate/AcquireSlot",
            GrpcMethod::RenewSlot => "/tollgate.v1.Tollgate/RenewSlot",
            GrpcMethod::ReleaseSlot => "/tollgate.v1.Tollgate/ReleaseSlot",
            GrpcMethod::Explain => "/tollgate.v1.Tollgate/Explain",
            GrpcMethod::HealthCheck => "/grpc.health.v1.Health/Check",
            GrpcMethod::HealthWatch => "/grpc.health.v1.Health/Watch",
            GrpcMethod::Reflect => "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            GrpcMethod::ReflectAlpha => "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        }
    }

    /// The method of a path. The hot methods come first in the search.
    pub fn find(path: &str) -> Option<GrpcMethod> {
        GrpcMethod::ALL.into_iter().find(|method| method.path() == path)
    }

    /// True if the method needs no token.
    pub const fn is_public(self) -> bool {
        matches!(self, GrpcMethod::HealthCheck | GrpcMethod::HealthWatch)
    }

    /// True if a call may have more than one request message.
    pub(super) const fn is_client_streaming(self) -> bool {
        matches!(self, GrpcMethod::StreamChecks | GrpcMethod::Reflect | GrpcMethod::ReflectAlpha)
    }

    /// True if a call may have more than one response message.
    pub(super) const fn is_long_lived(self) -> bool {
        self.is_client_streaming() || matches!(self, GrpcMethod::HealthWatch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_method_by_its_exact_path() {
        for (index, method) in GrpcMethod::ALL.into_iter().enumerate() {
            assert_eq!(GrpcMethod::find(method.path()), Some(method));
            assert_eq!(method as usize, index);
        }
        for path in ["", "/", "/tollgate.v1.Tollgate", "/tollgate.v1.Tollgate/check", "tollgate.v1.Tollgate/Check"] {
            assert_eq!(GrpcMethod::find(path), None);
        }
    }
}
