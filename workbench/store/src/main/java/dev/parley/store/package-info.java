/**
 * What a run leaves behind, in one DuckDB file: raw rows, only ever appended (schema {@code raw}), and cleaned views
 * over them, built anew by a step that can be run again (schema {@code clean}). Any DuckDB, from Python, R or its own
 * shell, opens the file.
 *
 * <p>Starting point: {@link dev.parley.store.RunStore}. Safe from any thread; one process writes at a time. Imports the
 * model and DuckDB.
 */
@NullMarked
package dev.parley.store;

import org.jspecify.annotations.NullMarked;
