package dev.parley.lab;

import dev.parley.model.LibraryRow;
import dev.parley.process.Packaged;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.xml.sax.SAXException;

/**
 * A jar's licence, where its publisher wrote it down: the POM beside it in a local repository, and that POM's parents;
 * the POM inside the jar; the manifest's {@code Bundle-License}. In a distribution, what the list beside the jar says.
 * Read once for each jar.
 */
final class Licence {
    private static final Map<Path, String> KNOWN = new ConcurrentHashMap<>();

    /** How publishers write the licences that nearly all libraries have, and their SPDX identifiers; the first that fits counts. */
    private static final List<Map.Entry<String, String>> SPDX = List.of(
            Map.entry(".*apache.*2.*", "Apache-2.0"),
            Map.entry("(the )?mit( license| licence)?|.*opensource\\.org/licenses/mit.*", "MIT"),
            Map.entry(".*mit-0.*|.*mit no attribution.*", "MIT-0"),
            Map.entry(".*(bsd.*3|new bsd|revised bsd|3.*bsd).*|.*licenses/bsd-3-clause.*", "BSD-3-Clause"),
            Map.entry(".*(bsd.*2|2.*bsd).*", "BSD-2-Clause"),
            Map.entry(".*(eclipse public|epl).*2.*", "EPL-2.0"),
            Map.entry(".*(eclipse public|epl).*1.*", "EPL-1.0"),
            Map.entry(".*(eclipse distribution|edl).*1.*", "BSD-3-Clause"),
            Map.entry(".*(mozilla|mpl).*2.*", "MPL-2.0"),
            Map.entry(".*(lesser|lgpl).*2\\.1.*", "LGPL-2.1"),
            Map.entry(".*(gpl2 w/ cpe|gpl.*classpath|gpl-2.*classpath).*", "GPL-2.0 with Classpath exception"),
            Map.entry(".*cc0.*|.*public domain.*", "CC0-1.0"));

    private Licence() {}

    /** Never empty: {@link LibraryRow#UNKNOWN} if nobody says. */
    static String of(Path jar) {
        return KNOWN.computeIfAbsent(jar.toAbsolutePath(), Licence::read);
    }

    private static String read(Path jar) {
        String file = jar.getFileName().toString();
        Path folder = jar.getParent();
        try {
            if (folder != null) {
                Path list = folder.resolve(Packaged.LICENCES);
                if (Files.isRegularFile(list)) {
                    return listed(list, file);
                }
                // a classifier stands in the jar's name, and not in the POM's
                String artifact =
                        String.valueOf(folder.resolve("..").normalize().getFileName());
                Path pom = folder.resolve(artifact + "-" + folder.getFileName() + ".pom");
                Optional<String> beside = ofPom(pom, 0);
                if (beside.isPresent()) {
                    return beside.get();
                }
                Path own = folder.resolve("../pom.xml").normalize();
                if (file.startsWith("parley-") || file.startsWith("rpcx-")) {
                    return ofPom(own, 0).orElse(LibraryRow.UNKNOWN);
                }
            }
            return inside(jar).orElse(LibraryRow.UNKNOWN);
        } catch (IOException e) {
            throw new UncheckedIOException(jar + ": its licence cannot be read: " + e.getMessage(), e);
        }
    }

    private static String listed(Path list, String file) throws IOException {
        return Files.readAllLines(list).stream()
                .filter(line -> line.startsWith(file + "\t"))
                .map(line -> line.substring(file.length() + 1))
                .findFirst()
                .orElse(LibraryRow.UNKNOWN);
    }

    private static Optional<String> inside(Path jar) throws IOException {
        try (JarFile open = new JarFile(jar.toFile())) {
            List<ZipEntry> poms = open.stream()
                    .filter(entry -> entry.getName().matches("META-INF/maven/[^/]+/[^/]+/pom\\.xml"))
                    .map(ZipEntry.class::cast)
                    .toList();
            if (poms.size() == 1) {
                try (InputStream pom = open.getInputStream(poms.getFirst())) {
                    Optional<String> named = project(pom).flatMap(Licence::licences);
                    if (named.isPresent()) {
                        return named;
                    }
                }
            }
            return open.getManifest() == null
                    ? Optional.empty()
                    : Optional.ofNullable(open.getManifest().getMainAttributes().getValue("Bundle-License"))
                            .map(text -> spdx(text.split("[;,]", 2)[0]));
        }
    }

    /** @param depth how many children have asked already: parents end, unless somebody's POM is its own */
    private static Optional<String> ofPom(Path pom, int depth) throws IOException {
        if (!Files.isRegularFile(pom) || depth > 10) {
            return Optional.empty();
        }
        Optional<Element> project;
        try (InputStream in = Files.newInputStream(pom)) {
            project = project(in);
        }
        Optional<String> own = project.flatMap(Licence::licences);
        Optional<Element> parent = project.flatMap(p -> child(p, "parent"));
        if (own.isPresent() || parent.isEmpty()) {
            return own;
        }
        return ofPom(parentOf(pom, parent.get()), depth + 1);
    }

    /** In the same repository, or where the reactor's relative path leads. */
    private static Path parentOf(Path pom, Element parent) {
        Path folder = pom.toAbsolutePath().getParent();
        String relative = text(parent, "relativePath").orElse("../pom.xml");
        if (folder != null && pom.endsWith("pom.xml")) {
            return folder.resolve(relative).normalize();
        }
        String group = text(parent, "groupId").orElse("");
        String artifact = text(parent, "artifactId").orElse("");
        String version = text(parent, "version").orElse("");
        Path named = Path.of(group.replace('.', '/'), artifact, version, artifact + "-" + version + ".pom");
        for (Path root = folder; root != null; root = root.getParent()) {
            if (Files.isRegularFile(root.resolve(named))) {
                return root.resolve(named);
            }
        }
        return named;
    }

    private static Optional<String> licences(Element project) {
        List<String> names = new ArrayList<>();
        child(project, "licenses").ifPresent(licences -> {
            for (Node node = licences.getFirstChild(); node != null; node = node.getNextSibling()) {
                if (node instanceof Element licence) {
                    text(licence, "name")
                            .or(() -> text(licence, "url"))
                            .map(Licence::spdx)
                            .filter(name -> !names.contains(name))
                            .ifPresent(names::add);
                }
            }
        });
        return names.isEmpty() ? Optional.empty() : Optional.of(String.join(" or ", names));
    }

    static String spdx(String name) {
        String plain = name.strip().replaceAll("\\s+", " ");
        String lower = plain.toLowerCase(java.util.Locale.ROOT);
        return SPDX.stream()
                .filter(known -> lower.matches(known.getKey()))
                .map(Map.Entry::getValue)
                .findFirst()
                .orElse(plain);
    }

    private static Optional<Element> child(Element parent, String name) {
        for (Node node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element && element.getTagName().equals(name)) {
                return Optional.of(element);
            }
        }
        return Optional.empty();
    }

    private static Optional<String> text(Element parent, String name) {
        return child(parent, name).map(e -> e.getTextContent().strip()).filter(text -> !text.isEmpty());
    }

    /** Empty for what is no plain XML: an old POM with entities of its own says nothing here, and stops nothing. */
    private static Optional<Element> project(InputStream pom) throws IOException {
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            DocumentBuilder builder = factory.newDocumentBuilder();
            builder.setErrorHandler(null);
            return Optional.of(builder.parse(pom).getDocumentElement());
        } catch (SAXException e) {
            return Optional.empty();
        } catch (ParserConfigurationException e) {
            throw new IllegalStateException("the JDK's XML parser cannot be told to leave document types out", e);
        }
    }
}
