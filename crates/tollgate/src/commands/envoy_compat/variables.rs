//! Every variable that envoyproxy/ratelimit reads, and what becomes of it here.

/// What becomes of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is translated into settings.
    Taken,
    /// It tunes what does not exist here; nobody misses anything.
    Moot,
    /// It asks for what Tollgate does not do, or does in another way: said when it is set to something that matters.
    Missed(&'static str),
}

use Fate::{Missed, Moot, Taken};

const XDS: &str = "rules come from files (or Tollgate's own database), not from an xDS server";
const STATSD: &str = "counts are at /metrics and /stats of the debug address, and are not sent to statsd";
const PROMETHEUS: &str = "/metrics is at the debug address";
const PER_SECOND: &str = "one store keeps all counters";
const MEMCACHE: &str = "counters live in Redis, Valkey or this process";
const TRACES: &str = "traces are not exported";

/// Those that are taken and mean yes or no.
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

/// In the order of that service's own settings.
pub const VARIABLES: &[(&str, Fate)] = &[
    ("HOST", Taken),
    ("PORT", Taken),
    ("DEBUG_HOST", Taken),
    ("DEBUG_PORT", Taken),
    ("GRPC_UDS", Taken),
    ("GRPC_HOST", Taken),
    ("GRPC_PORT", Taken),
    ("GRPC_MAX_CONNECTION_AGE", Taken),
    ("GRPC_MAX_CONNECTION_AGE_GRACE", Moot),
    ("GRPC_SERVER_USE_TLS", Taken),
    ("GRPC_SERVER_TLS_CERT", Taken),
    ("GRPC_SERVER_TLS_KEY", Taken),
    ("GRPC_CLIENT_TLS_CACERT", Taken),
    ("GRPC_CLIENT_TLS_SAN", Taken),
    ("LOG_LEVEL", Taken),
    ("LOG_FORMAT", Taken),
    ("CONFIG_TYPE", Taken),
    ("FORCE_START_WITHOUT_INITIAL_CONFIG", Missed("a start needs its rules: without them everything would be allowed")),
    ("CONFIG_GRPC_XDS_NODE_ID", Missed(XDS)),
    ("CONFIG_GRPC_XDS_NODE_METADATA", Missed(XDS)),
    ("CONFIG_GRPC_XDS_SERVER_URL", Missed(XDS)),
    ("CONFIG_GRPC_XDS_SERVER_USE_TLS", Missed(XDS)),
    ("USE_DOG_STATSD", Missed(STATSD)),
    ("USE_DOG_STATSD_MOGRIFIERS", Missed(STATSD)),
    ("USE_STATSD", Missed(STATSD)),
    ("STATSD_HOST", Missed(STATSD)),
    ("STATSD_PORT", Missed(STATSD)),
    ("EXTRA_TAGS", Missed(STATSD)),
    ("STATS_FLUSH_INTERVAL", Moot),
    ("DISABLE_STATS", Moot),
    ("USE_PROMETHEUS", Missed(PROMETHEUS)),
    ("PROMETHEUS_ADDR", Missed(PROMETHEUS)),
    ("PROMETHEUS_PATH", Missed(PROMETHEUS)),
    ("PROMETHEUS_MAPPER_YAML", Missed(PROMETHEUS)),
    ("RUNTIME_ROOT", Taken),
    ("RUNTIME_SUBDIRECTORY", Taken),
    ("RUNTIME_APPDIRECTORY", Taken),
    ("RUNTIME_IGNOREDOTFILES", Moot),
    ("RUNTIME_WATCH_ROOT", Moot),
    ("EXPIRATION_JITTER_MAX_SECONDS", Moot),
    ("LOCAL_CACHE_SIZE_IN_BYTES", Moot),
    ("NEAR_LIMIT_RATIO", Taken),
    ("CACHE_KEY_PREFIX", Missed("keys in the store are digests under `tg:`; give each fleet its own database instead")),
    ("BACKEND_TYPE", Taken),
    ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", Taken),
    ("LIMIT_RESPONSE_HEADERS_ENABLED", Taken),
    ("LIMIT_LIMIT_HEADER", Taken),
    ("LIMIT_REMAINING_HEADER", Taken),
    ("LIMIT_RESET_HEADER", Taken),
    ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", Moot),
    ("REDIS_SOCKET_TYPE", Taken),
    ("REDIS_TYPE", Taken),
    ("REDIS_URL", Taken),
    ("REDIS_POOL_SIZE", Moot),
    ("REDIS_AUTH", Taken),
    ("REDIS_TLS", Taken),
    ("REDIS_TLS_CLIENT_CERT", Taken),
    ("REDIS_TLS_CLIENT_KEY", Taken),
    ("REDIS_TLS_CACERT", Taken),
    ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", Taken),
    ("REDIS_PIPELINE_WINDOW", Moot),
    ("REDIS_PIPELINE_LIMIT", Moot),
    ("REDIS_PERSECOND", Missed(PER_SECOND)),
    ("REDIS_PERSECOND_SOCKET_TYPE", Moot),
    ("REDIS_PERSECOND_TYPE", Moot),
    ("REDIS_PERSECOND_URL", Moot),
    ("REDIS_PERSECOND_POOL_SIZE", Moot),
    ("REDIS_PERSECOND_AUTH", Moot),
    ("REDIS_PERSECOND_TLS", Moot),
    ("REDIS_PERSECOND_PIPELINE_WINDOW", Moot),
    ("REDIS_PERSECOND_PIPELINE_LIMIT", Moot),
    ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", Moot),
    ("MEMCACHE_HOST_PORT", Missed(MEMCACHE)),
    ("MEMCACHE_SRV", Missed(MEMCACHE)),
    ("SHADOW_MODE", Taken),
    ("RESPONSE_DYNAMIC_METADATA", Taken),
    ("MERGE_DOMAIN_CONFIG", Taken),
    ("TRACING_ENABLED", Missed(TRACES)),
];
