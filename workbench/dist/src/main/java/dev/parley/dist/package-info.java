/**
 * Makes distributions: an archive, or a container image, that holds the workbench with everything that it runs on.
 *
 * <p>Starting point: {@link dev.parley.dist.Distribution}. One thread. The package is on the class path of
 * {@code parley dist} alone, and in no distribution. It starts short commands only: {@code ldd}, and once the command
 * line that it has made.
 */
@NullMarked
package dev.parley.dist;

import org.jspecify.annotations.NullMarked;
