//! Nothing but a target for Cargo: the fuzz targets are binaries, and what they check lives in `tollgate-testkit`.
