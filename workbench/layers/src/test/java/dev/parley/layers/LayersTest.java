package dev.parley.layers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that the modules of the workbench keep to the table of folders in ARCHITECTURE.md, which it reads. A module is
 * named by its folder below {@code workbench/}. The classes are those that the build has made in each module's own
 * folder, tests left out.
 */
class LayersTest {
    private static final Path HOME = Path.of("../..").toAbsolutePath().normalize();

    private static final String HEAD = "| folder, below `workbench/`";
    private static final String LINE_BELOW_HEAD = "| ---";
    private static final String ONLY_THE_JDK = "only the JDK";
    private static final String STARTS_PROCESSES = "ProcessBuilder";
    private static final String TECHNOLOGIES = "transport/*";

    /** Stands for the folder of a class that is neither the workbench's nor RPCX's. */
    private static final String NO_FOLDER_OF_OURS = "";

    /** Packages of the library with which the generator records times. */
    private static final List<String> LIBRARIES_OF_LOAD = List.of("org.HdrHistogram.");

    private static final Pattern QUOTED = Pattern.compile("`([^`]+)`");
    private static final Pattern MODULE = Pattern.compile("<module>workbench/([^<]+)</module>");
    private static final Pattern OWN_ARTIFACT = Pattern.compile("</parent>\\s*<artifactId>([^<]+)</artifactId>");
    private static final Pattern ARTIFACT = Pattern.compile("<artifactId>(parley-[^<]+)</artifactId>");

    private static final List<Row> ROWS = new ArrayList<>();

    /** In the order of {@code pom.xml}. */
    private static final List<String> MODULES = new ArrayList<>();

    /** The classes of each module by name. */
    private static final Map<String, Map<String, JavaClass>> CLASSES = new LinkedHashMap<>();

    /** The module of each class; the first one of a class that two modules have, because both compile its source. */
    private static final Map<String, String> MODULE_OF = new HashMap<>();

    /**
     * A row of the table.
     *
     * @param folders modules, and folders with {@code /*} behind them whose other modules belong to this row
     * @param uses modules of the workbench or of RPCX that these may use, and folders whose modules they may all use
     * @param isJdkOnly true where no library is allowed either
     * @param startsProcesses true where processes may be started
     */
    private record Row(List<String> folders, List<String> uses, boolean isJdkOnly, boolean startsProcesses) {
        static Row of(String line) {
            String[] cells = line.split("\\|");
            assertThat(cells)
                    .as("what the bars of this line part, with nothing before the first one: %s", line)
                    .hasSize(4);
            List<String> named = quoted(cells[3]);
            return new Row(
                    quoted(cells[1]),
                    named.stream()
                            .filter(name -> !name.equals(STARTS_PROCESSES))
                            .toList(),
                    cells[3].strip().startsWith(ONLY_THE_JDK),
                    named.contains(STARTS_PROCESSES));
        }

        boolean mayUse(String folder) {
            return uses.stream().anyMatch(name -> isIn(folder, name));
        }

        boolean mayUse(JavaClass c) {
            String folder = folder(c);
            return folder.equals(NO_FOLDER_OF_OURS) ? !isJdkOnly || isOfTheJdk(c) : mayUse(folder);
        }
    }

    private static List<String> quoted(String text) {
        return QUOTED.matcher(text).results().map(found -> found.group(1)).toList();
    }

    @BeforeAll
    static void readTableAndClasses() throws IOException {
        boolean isInTable = false;
        for (String line : Files.readAllLines(HOME.resolve("ARCHITECTURE.md"))) {
            if (isInTable && line.startsWith("|") && !line.startsWith(LINE_BELOW_HEAD)) {
                ROWS.add(Row.of(line));
            }
            isInTable = line.startsWith(HEAD) || isInTable && line.startsWith("|");
        }
        MODULE.matcher(Files.readString(HOME.resolve("pom.xml")))
                .results()
                .map(found -> found.group(1))
                .forEach(MODULES::add);
        // What is not of the module itself is needed by name only.
        ArchConfiguration.get().setResolveMissingDependenciesFromClassPath(false);
        for (String module : MODULES) {
            Map<String, JavaClass> classes = classes(HOME.resolve("workbench").resolve(module));
            CLASSES.put(module, classes);
            classes.keySet().forEach(name -> MODULE_OF.putIfAbsent(name, module));
        }
    }

    /** The compiled classes of a module by name; none where it has tests only, or nothing but a POM. */
    private static Map<String, JavaClass> classes(Path module) throws IOException {
        Path sources = module.resolve("src/main/java");
        Path compiled = module.resolve("target/classes");
        Map<String, JavaClass> classes = new TreeMap<>();
        if (!Files.isDirectory(sources)) {
            return classes;
        }
        if (Files.isDirectory(compiled)) {
            new ClassFileImporter().importPath(compiled).forEach(c -> classes.put(c.getName(), c));
        }
        try (Stream<Path> files = Files.walk(sources)) {
            List<String> missing = files.map(file -> sources.relativize(file).toString())
                    .filter(file -> file.endsWith(".java") && !file.endsWith("-info.java"))
                    .map(file -> file.substring(0, file.lastIndexOf('.')).replace(File.separatorChar, '.'))
                    .filter(name -> !classes.containsKey(name))
                    .toList();
            assertThat(missing)
                    .as(
                            "classes that have a source, and are not in %s (expected: all are compiled before this "
                                    + "test, by mvn verify -pl workbench/layers -am)",
                            compiled)
                    .isEmpty();
        }
        return classes;
    }

    /** True for a folder itself, and for each that stands in it. */
    private static boolean isIn(String module, String folder) {
        return module.equals(folder) || module.startsWith(folder + "/");
    }

    /** Name by which a row stands for all modules of a folder, this one among them; for {@code load} the same. */
    private static String kind(String module) {
        return module.replaceFirst("/.*", "/*");
    }

    /** Number of the row of a module, or else of its kind; −1 where neither has one. */
    private static int rank(String module) {
        int own = rowNamed(module);
        return own >= 0 ? own : rowNamed(kind(module));
    }

    private static int rowNamed(String folder) {
        return IntStream.range(0, ROWS.size())
                .filter(i -> ROWS.get(i).folders().contains(folder))
                .findFirst()
                .orElse(-1);
    }

    private static Row row(String module) {
        assertThat(rank(module))
                .as("row of workbench/%s in the table of ARCHITECTURE.md", module)
                .isNotNegative();
        return ROWS.get(rank(module));
    }

    /** Uses of classes of other modules, of libraries and of the JDK by the classes of a module. */
    private static Stream<Dependency> uses(String module) {
        Map<String, JavaClass> own = classesOf(module);
        return own.values().stream()
                .flatMap(c -> c.getDirectDependenciesFromSelf().stream())
                .filter(use -> !own.containsKey(used(use).getName()));
    }

    private static Map<String, JavaClass> classesOf(String module) {
        return CLASSES.getOrDefault(module, Map.of());
    }

    private static JavaClass used(Dependency use) {
        return use.getTargetClass().getBaseComponentType();
    }

    private static String text(String module, Dependency use) {
        return module + ": " + use.getOriginClass().getName() + " uses "
                + used(use).getName();
    }

    /** Folder of a class; {@link #NO_FOLDER_OF_OURS} of one that is not ours. */
    private static String folder(JavaClass c) {
        String name = c.getName();
        if (name.startsWith("dev.rpcx.")) {
            return name.startsWith("dev.rpcx.probe.") ? "rpcx/rpcx-probe" : "rpcx/rpcx";
        }
        return name.startsWith("dev.parley.") ? MODULE_OF.getOrDefault(name, "unknown") : NO_FOLDER_OF_OURS;
    }

    /** JSpecify's annotations count too, since they need not be there when a program runs. */
    private static boolean isOfTheJdk(JavaClass c) {
        return c.isPrimitive()
                || Stream.of("java.", "javax.", "com.sun.", "org.jspecify.").anyMatch(c.getName()::startsWith);
    }

    @Test
    void eachModuleHasARowAndEachRowAModule() {
        assertThat(MODULES)
                .filteredOn(module -> rank(module) < 0)
                .as("modules of pom.xml without a row in the table of ARCHITECTURE.md")
                .isEmpty();
        assertThat(ROWS.stream().flatMap(row -> row.folders().stream()).toList())
                .doesNotHaveDuplicates()
                .filteredOn(folder ->
                        MODULES.stream().noneMatch(module -> folder.equals(module) || folder.equals(kind(module))))
                .as("folders in the table of ARCHITECTURE.md that are no module of pom.xml")
                .isEmpty();
    }

    @Test
    void theModulesOfTheBuildStandInTheOrderOfTheTable() {
        assertThat(MODULES)
                .as("modules of pom.xml, in the order of the table of ARCHITECTURE.md")
                .isSortedAccordingTo(Comparator.comparingInt(LayersTest::rank));
    }

    @Test
    void aRowNamesOnlyFoldersAboveIt() {
        for (int i = 0; i < ROWS.size(); i++) {
            int own = i;
            for (String name : ROWS.get(i).uses()) {
                if (name.startsWith("rpcx/")) {
                    assertThat(HOME.resolve(name).resolve("pom.xml")).exists();
                } else {
                    assertThat(MODULES)
                            .filteredOn(module -> isIn(module, name))
                            .as(
                                    "modules of %s, which the row of %s names",
                                    name, ROWS.get(i).folders())
                            .isNotEmpty()
                            .allMatch(module -> rank(module) < own, "stands above that row");
                }
            }
        }
    }

    @Test
    void aModuleUsesOnlyWhatItsRowNames() {
        Set<String> wrong = new TreeSet<>();
        for (String module : MODULES) {
            Row row = row(module);
            uses(module).filter(use -> !row.mayUse(used(use))).forEach(use -> wrong.add(text(module, use)));
        }
        assertThat(wrong)
                .as("uses that the table of ARCHITECTURE.md does not allow")
                .isEmpty();
    }

    @Test
    void aProcessIsStartedOnlyWhereTheRowSaysSo() {
        assertThat(MODULES)
                .filteredOn(module -> !row(module).startsProcesses())
                .filteredOn(module -> classesOf(module).values().stream().anyMatch(LayersTest::startsAProcess))
                .as("modules that start processes, and whose row in ARCHITECTURE.md does not name ProcessBuilder")
                .isEmpty();
    }

    private static boolean startsAProcess(JavaClass c) {
        return c.getDirectDependenciesFromSelf().stream()
                        .anyMatch(use -> used(use).getName().equals("java.lang.ProcessBuilder"))
                || c.getMethodCallsFromSelf().stream()
                        .anyMatch(call -> call.getTargetOwner().getName().equals("java.lang.Runtime")
                                && call.getTarget().getName().equals("exec"));
    }

    @Test
    void nothingKnowsATechnology() {
        List<String> technologies = MODULES.stream()
                .filter(module -> rank(module) == rowNamed(TECHNOLOGIES))
                .toList();
        assertThat(technologies).contains("transport/rest", "transport/grpc", "transport/rpcx");
        assertThat(ROWS).noneMatch(row -> technologies.stream().anyMatch(row::mayUse));
        assertThat(uses("load")
                        .filter(use -> folder(used(use)).equals(NO_FOLDER_OF_OURS) && !isOfTheJdk(used(use)))
                        .filter(use ->
                                LIBRARIES_OF_LOAD.stream().noneMatch(used(use).getName()::startsWith))
                        .map(use -> text("load", use)))
                .as("libraries that the load generator uses beyond %s", LIBRARIES_OF_LOAD)
                .isEmpty();
    }

    @Test
    void analysisAndReportOnlyReadAndTheModelStandsOnTheJdkAlone() {
        for (String reader : List.of("analysis", "report")) {
            Row row = row(reader);
            assertThat(List.of("process", "backend/core", "load", "lab"))
                    .as("what %s must not use", reader)
                    .noneMatch(row::mayUse);
            assertThat(row.startsProcesses()).as("%s starts processes", reader).isFalse();
        }
        assertThat(row("model").isJdkOnly()).isTrue();
    }

    /**
     * A parallel build has made a module's classes before this test if this module depends on it, or on a module that
     * does.
     */
    @Test
    void everyModuleIsBuiltBeforeThisOne() throws IOException {
        Map<String, String> poms = new TreeMap<>();
        for (String module : MODULES) {
            String pom =
                    Files.readString(HOME.resolve("workbench").resolve(module).resolve("pom.xml"));
            Matcher own = OWN_ARTIFACT.matcher(pom);
            assertThat(own.find())
                    .as("artifact of workbench/%s after its parent's", module)
                    .isTrue();
            poms.put(own.group(1), pom);
        }
        Set<String> before = new TreeSet<>();
        Deque<String> found = new ArrayDeque<>(List.of("parley-layers"));
        while (!found.isEmpty()) {
            String artifact = found.pop();
            if (poms.containsKey(artifact) && before.add(artifact)) {
                ARTIFACT.matcher(poms.get(artifact))
                        .results()
                        .map(match -> match.group(1))
                        .forEach(found::add);
            }
        }
        assertThat(before)
                .as("modules that are built before this one (expected: all; workbench/layers/pom.xml names those on "
                        + "which no other module depends)")
                .isEqualTo(poms.keySet());
    }

    @Test
    void aModuleWhoseClassesAreNotThereIsNamed(@TempDir Path module) throws IOException {
        Path sources = Files.createDirectories(module.resolve("src/main/java/dev/parley/made"));
        Files.createFile(sources.resolve("Thing.java"));
        Files.createFile(sources.resolve("package-info.java"));
        assertThatThrownBy(() -> classes(module))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("[\"dev.parley.made.Thing\"]")
                .hasMessageContaining(module.resolve("target/classes").toString());
    }
}
