package dev.parley.cli;

import java.nio.file.Path;
import java.util.List;

/**
 * What makes distributions. It stands in a module of its own, {@code workbench/dist}, with libraries that no other
 * command needs: the launcher puts it on the class path of {@code parley dist} alone. Found with ServiceLoader.
 */
public interface Packager {
    /**
     * Makes an archive of this checkout, or an image that holds the same. Blocks for a minute.
     *
     * @param version of the command line, such as {@code 0.1.0}
     * @param out folder that the file goes into; made if need be
     * @return lines for a person: the file, its size, and what takes most of it
     * @throws dev.parley.lab.LabException if it cannot be made
     */
    List<String> make(String version, Path out, boolean isImage) throws InterruptedException;
}
