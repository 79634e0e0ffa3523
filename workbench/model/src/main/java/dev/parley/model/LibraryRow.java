package dev.parley.model;

/**
 * One file that a service needs to run.
 *
 * @param technology whose services need the file, or {@link FigureRow#EMPTY} for the empty service
 * @param name of the artifact, such as {@code netty-buffer}
 * @param version as in its file name; empty where there is none
 * @param licence as its publisher names it, by its SPDX identifier where it has one; {@link #UNKNOWN} where nothing
 *     names one
 * @param bytes on disk
 */
public record LibraryRow(String technology, String name, String version, String licence, long bytes) {
    public static final String UNKNOWN = "unknown";

    public LibraryRow {
        if (bytes < 0) {
            throw new BadInput("bytes of " + name, bytes, "0 or more");
        }
    }
}
