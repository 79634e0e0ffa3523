package dev.parley.model;

/**
 * One file that a service needs to run.
 *
 * @param technology whose service it is part of, or {@link FigureRow#EMPTY} for the empty service
 * @param name of the artifact, such as {@code netty-buffer}
 * @param version as in its file name; empty where there is none
 * @param bytes on disk
 */
public record LibraryRow(String technology, String name, String version, long bytes) {
    public LibraryRow {
        if (bytes < 0) {
            throw new BadInput("bytes of " + name, bytes, "0 or more");
        }
    }
}
