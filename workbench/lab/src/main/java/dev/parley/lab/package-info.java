/**
 * Plans trials, starts processes, runs them, collects their rows: the only composer.
 *
 * <p>Starting points: {@link dev.parley.lab.Lab#run} carries out a {@link dev.parley.model.Study}; {@link
 * dev.parley.lab.TrialPath} is the path of its trials, step by step. One thread runs trials; a shutdown hook ends
 * every process when the lab is told to end, and when it is killed they end by themselves with their standard input.
 * Never imports a report.
 */
@NullMarked
package dev.parley.lab;

import org.jspecify.annotations.NullMarked;
