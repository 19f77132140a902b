//! A load generator: open and closed loops, exact histograms, little CPU of its own.
