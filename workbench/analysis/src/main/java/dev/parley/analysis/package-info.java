/**
 * What the rows of a run say: percentiles, medians over restarts with intervals, comparisons with verdicts, whether a
 * target is met, and which trials are void. The only place where a percentile is computed.
 *
 * <p>Starting points: {@link dev.parley.analysis.Analysis} for a whole run, {@link dev.parley.analysis.Distribution} for one
 * histogram. Immutable once built; the same rows and seed give the same figures. Imports the store; starts nothing, writes nothing.
 */
@NullMarked
package dev.parley.analysis;

import org.jspecify.annotations.NullMarked;
