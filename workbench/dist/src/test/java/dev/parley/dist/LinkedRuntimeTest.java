package dev.parley.dist;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.lab.Catalog;
import dev.parley.lab.Inventory;
import dev.parley.process.Packaged;
import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.constantpool.ClassEntry;
import java.lang.classfile.constantpool.PoolEntry;
import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.lang.module.ResolvedModule;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;

class LinkedRuntimeTest {
    /** The repository's root, which tests run below. */
    private static Path home() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("workbench/dist/pom.xml"))) {
            folder = folder.getParent();
        }
        return folder;
    }

    /** Names the JDK's module of each package that one of its modules has. */
    private static Map<String, String> modulesOfPackages() {
        Map<String, String> modules = new HashMap<>();
        for (ModuleReference module : ModuleFinder.ofSystem().findAll()) {
            module.descriptor()
                    .packages()
                    .forEach(each -> modules.put(each, module.descriptor().name()));
        }
        return modules;
    }

    private static Set<String> linked() {
        return Configuration.empty()
                .resolve(ModuleFinder.of(), ModuleFinder.ofSystem(), LinkedRuntime.MODULES)
                .modules()
                .stream()
                .map(ResolvedModule::name)
                .collect(Collectors.toSet());
    }

    private static Set<String> packagesThatAreReferredTo(byte[] classFile) {
        Set<String> packages = new TreeSet<>();
        for (PoolEntry entry : ClassFile.of().parse(classFile).constantPool()) {
            if (entry instanceof ClassEntry type) {
                String name = type.asInternalName().replaceFirst("^\\[+L?", "");
                int end = name.lastIndexOf('/');
                if (end > 0) {
                    packages.add(name.substring(0, end).replace('/', '.'));
                }
            }
        }
        return packages;
    }

    @Test
    void theRuntimeHasEveryModuleThatAJarRefersTo() throws IOException {
        Path home = home();
        Set<String> modules = Inventory.modules(Catalog.read());
        assumeTrue(
                modules.stream().allMatch(module -> Packaged.isHere(home, module)),
                "class files are read from packaged modules: run mvn verify, not mvn test");
        Set<Path> jars = new TreeSet<>();
        modules.forEach(module -> jars.addAll(Packaged.jars(home, module)));
        Map<String, String> moduleOf = modulesOfPackages();
        Set<String> linked = linked();

        // by module, one class that refers to it
        Map<String, String> missing = new TreeMap<>();
        for (Path jar : jars) {
            try (JarFile open = new JarFile(jar.toFile(), false, ZipFile.OPEN_READ, Runtime.version())) {
                List<JarEntry> classes = open.versionedStream()
                        .filter(entry -> entry.getName().endsWith(".class"))
                        .toList();
                for (JarEntry entry : classes) {
                    try (InputStream in = open.getInputStream(entry)) {
                        for (String each : packagesThatAreReferredTo(in.readAllBytes())) {
                            String module = moduleOf.get(each);
                            if (module != null && !linked.contains(module)) {
                                missing.putIfAbsent(module, jar.getFileName() + ", " + entry.getName());
                            }
                        }
                    }
                }
            }
        }

        assertThat(missing).isEmpty();
    }

    @Test
    void theServicesAndTheGeneratorHaveWhatTheyUseBeyondJavaSe() {
        assertThat(linked()).contains("java.base", "java.sql", "jdk.httpserver", "jdk.management", "jdk.net");
    }
}
