/**
 * The nouns of the workbench as records that cannot be wrong: what is compared ({@link dev.parley.model.Technology},
 * {@link dev.parley.model.Topology}, {@link dev.parley.model.MessageSpec}, {@link dev.parley.model.Load}), what a run
 * does ({@link dev.parley.model.TrialSpec}) and what it leaves behind ({@link dev.parley.model.Run} and the rows).
 *
 * <p>Starting points: {@link dev.parley.model.TrialSpec} and {@link dev.parley.model.Metric}. Immutable, so safe from
 * any thread. Imports nothing but the JDK.
 */
@NullMarked
package dev.parley.model;

import org.jspecify.annotations.NullMarked;
