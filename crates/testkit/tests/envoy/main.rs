//! Files of envoyproxy/ratelimit: the published cases, what is refused, and what their trees mean.

mod errors;
mod matching;
mod vectors;
