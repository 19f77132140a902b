//! Every variable of envoyproxy/ratelimit, and its support.

/// How a variable is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSupport {
    /// Translated into settings.
    Supported,
    /// Ignored: it tunes something that does not exist in Tollgate, without a loss of function.
    Ignored,
    /// Unsupported, for this reason: reported if it is set, and not to false.
    Unsupported(&'static str),
}

use VariableSupport::{Ignored, Supported, Unsupported};

const XDS: &str = "rules come from files (or Tollgate's own database), not from an xDS server";
const STATSD: &str = "counts are at /metrics and /stats of the debug address, and are not sent to statsd";
const PROMETHEUS: &str = "/metrics is at the debug address";
const PER_SECOND: &str = "one store keeps all counters";
const MEMCACHE: &str = "counters are in Redis, Valkey or this process";
const TRACES: &str = "traces are not exported";

/// The supported boolean variables.
pub const BOOLEANS: [&str; 8] = [
    "GRPC_SERVER_USE_TLS",
    "LIMIT_RESPONSE_HEADERS_ENABLED",
    "MERGE_DOMAIN_CONFIG",
    "REDIS_TLS",
    "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
    "RESPONSE_DYNAMIC_METADATA",
    "SHADOW_MODE",
    "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
];

/// All variables, in the order of envoyproxy/ratelimit's settings.
pub const VARIABLES: &[(&str, VariableSupport)] = &[
    ("HOST", Supported),
    ("PORT", Supported),
    ("DEBUG_HOST", Supported),
    ("DEBUG_PORT", Supported),
    ("GRPC_UDS", Supported),
    ("GRPC_HOST", Supported),
    ("GRPC_PORT", Supported),
    ("GRPC_MAX_CONNECTION_AGE", Supported),
    ("GRPC_MAX_CONNECTION_AGE_GRACE", Ignored),
    ("GRPC_SERVER_USE_TLS", Supported),
    ("GRPC_SERVER_TLS_CERT", Supported),
    ("GRPC_SERVER_TLS_KEY", Supported),
    ("GRPC_CLIENT_TLS_CACERT", Supported),
    ("GRPC_CLIENT_TLS_SAN", Supported),
    ("LOG_LEVEL", Supported),
    ("LOG_FORMAT", Supported),
    ("CONFIG_TYPE", Supported),
    (
        "FORCE_START_WITHOUT_INITIAL_CONFIG",
        Unsupported("a start needs its rules: without them everything would be allowed"),
    ),
    ("CONFIG_GRPC_XDS_NODE_ID", Unsupported(XDS)),
    ("CONFIG_GRPC_XDS_NODE_METADATA", Unsupported(XDS)),
    ("CONFIG_GRPC_XDS_SERVER_URL", Unsupported(XDS)),
    ("CONFIG_GRPC_XDS_SERVER_USE_TLS", Unsupported(XDS)),
    ("USE_DOG_STATSD", Unsupported(STATSD)),
    ("USE_DOG_STATSD_MOGRIFIERS", Unsupported(STATSD)),
    ("USE_STATSD", Unsupported(STATSD)),
    ("STATSD_HOST", Unsupported(STATSD)),
    ("STATSD_PORT", Unsupported(STATSD)),
    ("EXTRA_TAGS", Unsupported(STATSD)),
    ("STATS_FLUSH_INTERVAL", Ignored),
    ("DISABLE_STATS", Ignored),
    ("USE_PROMETHEUS", Unsupported(PROMETHEUS)),
    ("PROMETHEUS_ADDR", Unsupported(PROMETHEUS)),
    ("PROMETHEUS_PATH", Unsupported(PROMETHEUS)),
    ("PROMETHEUS_MAPPER_YAML", Unsupported(PROMETHEUS)),
    ("RUNTIME_ROOT", Supported),
    ("RUNTIME_SUBDIRECTORY", Supported),
    ("RUNTIME_APPDIRECTORY", Supported),
    ("RUNTIME_IGNOREDOTFILES", Ignored),
    ("RUNTIME_WATCH_ROOT", Ignored),
    ("EXPIRATION_JITTER_MAX_SECONDS", Ignored),
    ("LOCAL_CACHE_SIZE_IN_BYTES", Supported),
    ("NEAR_LIMIT_RATIO", Supported),
    (
        "CACHE_KEY_PREFIX",
        Unsupported("keys in the store are digests under `tg:`; give each fleet its own database instead"),
    ),
    ("BACKEND_TYPE", Supported),
    ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", Supported),
    ("LIMIT_RESPONSE_HEADERS_ENABLED", Supported),
    ("LIMIT_LIMIT_HEADER", Supported),
    ("LIMIT_REMAINING_HEADER", Supported),
    ("LIMIT_RESET_HEADER", Supported),
    ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", Ignored),
    ("REDIS_SOCKET_TYPE", Supported),
    ("REDIS_TYPE", Supported),
    ("REDIS_URL", Supported),
    ("REDIS_POOL_SIZE", Ignored),
    ("REDIS_AUTH", Supported),
    ("REDIS_TLS", Supported),
    ("REDIS_TLS_CLIENT_CERT", Supported),
    ("REDIS_TLS_CLIENT_KEY", Supported),
    ("REDIS_TLS_CACERT", Supported),
    ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", Supported),
    ("REDIS_PIPELINE_WINDOW", Ignored),
    ("REDIS_PIPELINE_LIMIT", Ignored),
    ("REDIS_PERSECOND", Unsupported(PER_SECOND)),
    ("REDIS_PERSECOND_SOCKET_TYPE", Ignored),
    ("REDIS_PERSECOND_TYPE", Ignored),
    ("REDIS_PERSECOND_URL", Ignored),
    ("REDIS_PERSECOND_POOL_SIZE", Ignored),
    ("REDIS_PERSECOND_AUTH", Ignored),
    ("REDIS_PERSECOND_TLS", Ignored),
    ("REDIS_PERSECOND_PIPELINE_WINDOW", Ignored),
    ("REDIS_PERSECOND_PIPELINE_LIMIT", Ignored),
    ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", Ignored),
    ("MEMCACHE_HOST_PORT", Unsupported(MEMCACHE)),
    ("MEMCACHE_SRV", Unsupported(MEMCACHE)),
    ("SHADOW_MODE", Supported),
    ("RESPONSE_DYNAMIC_METADATA", Supported),
    ("MERGE_DOMAIN_CONFIG", Supported),
    ("TRACING_ENABLED", Unsupported(TRACES)),
];
