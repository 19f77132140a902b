//! Responses to messages that cannot be read: the same on every HTTP listener.

use tollgate_service::ApiError;

use crate::head::HttpError;

/// The response to a message that cannot be read. The connection closes after it.
pub fn http_error(error: HttpError) -> ApiError {
    let error = match error {
        HttpError::Malformed(detail) => ApiError::new(400, "malformed_request", "Bad request", detail),
        HttpError::Version => {
            ApiError::new(505, "http_version", "HTTP version not supported", "Use HTTP/1.1 or HTTP/2.")
        }
        HttpError::TargetTooLong => ApiError::new(414, "target_too_long", "URI too long", "Shorten the path."),
        HttpError::HeadTooLarge => ApiError::new(
            431,
            "head_too_large",
            "Request header fields too large",
            "Send fewer or shorter header fields.",
        ),
        HttpError::Expectation => {
            ApiError::new(417, "expectation", "Expectation failed", "Only 100-continue can be expected.")
        }
        HttpError::BodyTooLarge => ApiError::new(
            413,
            "body_too_large",
            "Content too large",
            "Send less at once: the settings max_body and max_batch_body say how much.",
        ),
        HttpError::TooSlow => ApiError::new(408, "too_slow", "Request timeout", "The body did not arrive in time."),
        HttpError::NoRoom => ApiError {
            field: Some(("Retry-After", "1")),
            ..ApiError::new(503, "no_room", "Service unavailable", "Too many bodies are on their way; try again.")
        },
        HttpError::Panicked => {
            ApiError::new(500, "internal_error", "Internal server error", "A bug in Tollgate; its log says more.")
        }
    };
    ApiError { closes: true, ..error }
}
