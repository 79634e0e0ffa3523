package dev.rpcx.tool;

import dev.rpcx.internal.schema.Compatibility;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Schema;
import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * Finds the types of a project's services that come from elsewhere, from a jar or from another project, and whose
 * numbers no lock file there keeps.
 */
final class ForeignTypes {
    private ForeignTypes() {}

    /**
     * Prints a note for each type of a library if no lock file of the library has all numbers of the type. The note is
     * needed because other users of the library do not see this project's lock file. They could give the type other
     * numbers. There are two kinds of library:
     *
     * <ul>
     *   <li>A jar. Its lock file is the one in the jar.
     *   <li>The folder of another project. Its lock files are all those of the class path that are in folders of other
     *       projects. If {@link #moduleOf} returns null, this project's folder is not known, so the types in folders
     *       are skipped.
     * </ul>
     */
    static void note(Schema schema, Path file, ClassLoader loader, Notes notes) throws IOException {
        Path module = moduleOf(file);
        Map<Path, List<LockFile>> locks = new HashMap<>();
        for (Compatibility.Numbered each : Compatibility.numberedByLocks(schema)) {
            Path place = placeOf(each.type());
            boolean isFolder = place != null && Files.isDirectory(place);
            if (place == null || isFolder && (module == null || place.startsWith(module))) {
                continue;
            }
            List<LockFile> known = locks.get(place);
            if (known == null) {
                known = isFolder ? locksBeside(module, loader) : List.of(lockIn(place));
                locks.put(place, known);
            }
            if (known.stream().noneMatch(each::isIn)) {
                notes.add(each.entry().type() + " comes from "
                        + (isFolder ? place : place.getFileName())
                        + ", which has no lock for all of it, so others who use it may give other numbers"
                        + " (expected: " + LockFile.RESOURCE + " there, or @Field)");
            }
        }
    }

    /**
     * Returns the folder of the project to which a lock file belongs. The folder is the one that contains the last
     * {@code src} of the lock file's path. For {@code /shop/src/main/resources/META-INF/rpcx/schema.lock}, the folder
     * is {@code /shop}. Returns null if the path has no {@code src}.
     */
    private static @Nullable Path moduleOf(Path file) {
        Path path = file.toAbsolutePath().normalize();
        for (int i = path.getNameCount() - 1; i > 0; i--) {
            if (path.getName(i).toString().equals("src")) {
                return path.getRoot().resolve(path.subpath(0, i));
            }
        }
        return null;
    }

    /**
     * Returns the lock files of the class path that are in folders of other projects. The whole class path is searched,
     * since a build can put a lock file and the classes into different folders.
     *
     * @param module folder of this project, whose lock files are left out; if null, no lock file is left out
     */
    private static List<LockFile> locksBeside(@Nullable Path module, ClassLoader loader) throws IOException {
        List<LockFile> all = new ArrayList<>();
        for (URL url : Collections.list(loader.getResources(LockFile.RESOURCE))) {
            Path path = pathOf(url);
            if (path != null && (module == null || !path.startsWith(module))) {
                all.add(LockFile.parse(Files.readString(path), path.toString()));
            }
        }
        return all;
    }

    /**
     * Returns the jar or folder from which a class was loaded. Returns null for a class from another place, such as the
     * JDK.
     */
    private static @Nullable Path placeOf(Class<?> type) {
        CodeSource source = type.getProtectionDomain().getCodeSource();
        return source == null || source.getLocation() == null ? null : pathOf(source.getLocation());
    }

    private static @Nullable Path pathOf(URL url) {
        try {
            return url.getProtocol().equals("file") ? Path.of(url.toURI()) : null;
        } catch (URISyntaxException | IllegalArgumentException e) {
            return null;
        }
    }

    /** Returns the lock file in a jar; an empty one if the jar has none. */
    static LockFile lockIn(Path jar) throws IOException {
        try (ZipFile file = new ZipFile(jar.toFile())) {
            ZipEntry entry = file.getEntry(LockFile.RESOURCE);
            if (entry == null) {
                return LockFile.none();
            }
            try (InputStream in = file.getInputStream(entry)) {
                return LockFile.parse(
                        new String(in.readAllBytes(), StandardCharsets.UTF_8), jar + "!/" + LockFile.RESOURCE);
            }
        }
    }
}
