//! Several questions in one call.
