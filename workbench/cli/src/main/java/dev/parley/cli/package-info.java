/**
 * The command line: turns words into a {@link dev.parley.model.Study}, shows how it goes, writes what came out.
 *
 * <p>Starting point: {@link dev.parley.cli.Parley}. Exit codes: 0 good, 1 error, 2 it cannot be told, 3 worse than
 * the baseline, or a target is not met.
 */
@NullMarked
package dev.parley.cli;

import org.jspecify.annotations.NullMarked;
