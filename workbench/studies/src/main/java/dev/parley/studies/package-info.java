/**
 * Studies as files: one YAML form for all runs, its JSON Schema, and the studies that come with the workbench.
 *
 * <p>Starting points: {@link dev.parley.studies.StudyFile} reads a file into a {@link dev.parley.model.Study} and tells every mistake with
 * its line; {@link dev.parley.studies.StudyText} writes a study out in full and gives its digest; StudyKeys has every
 * key with its meaning, of which the reader and the schema are made. One thread each. Never starts anything.
 */
@NullMarked
package dev.parley.studies;

import org.jspecify.annotations.NullMarked;
