/**
 * The command line: turns words into a {@link dev.parley.model.Study}, shows how it goes, writes what came out.
 *
 * <p>Starting point: {@link dev.parley.cli.Parley}. Exit codes: 0 good, 1 error, 2 nothing to hold it against or not valid, 3 worse than the
 * baseline.
 */
@NullMarked
package dev.parley.cli;

import org.jspecify.annotations.NullMarked;
