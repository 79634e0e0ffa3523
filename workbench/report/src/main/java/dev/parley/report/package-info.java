/**
 * The results of a run as people and scripts read them: a table for the terminal, {@code summary.csv}, {@code
 * summary.json}, for a study with a target {@code targets.csv}, and one self-contained {@code report.html}. Reads the
 * store and nothing else, so that a report can be built again at any time.
 *
 * <p>A page is a record of plain data, such as {@code RunPage}, and a template that writes it. Templates stand in
 * {@code src/main/jte}; the build makes classes of them in this package, so that what they show need not be public.
 *
 * <p>What a reproduced paper came to is {@code PaperResults}: made from the stores of its parts, written as CSV and
 * {@code record.json}, and read from these again, so that its page outlives the stores.
 *
 * <p>Starting points: {@link dev.parley.report.Report}, and {@link dev.parley.report.PaperReport} with {@link
 * dev.parley.report.PaperRecord}. Immutable. Imports the analysis; starts nothing.
 */
@NullMarked
package dev.parley.report;

import org.jspecify.annotations.NullMarked;
