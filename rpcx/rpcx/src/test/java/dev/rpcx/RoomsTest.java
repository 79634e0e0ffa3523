package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/**
 * Each class of this package stands in a room, and refers to none of a room above its own. What did so when the rooms
 * were drawn stands in a list, from which lines are taken and to which none is added.
 */
class RoomsTest {
    private static final String PACKAGE = "dev.rpcx";

    /** What may not be referred to although it does not stand above. */
    private static final Set<String> ASIDE = Set.of("server -> client", "server -> discovery");

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackagesOf(Client.class);

    private final List<String> order = new ArrayList<>();
    private final Map<String, String> rooms = new LinkedHashMap<>();

    RoomsTest() throws IOException {
        for (String line : lines("rooms.txt")) {
            String[] words = line.split(" +");
            if (!order.contains(words[0])) {
                order.add(words[0]);
            }
            for (int i = 1; i < words.length; i++) {
                rooms.put(words[i], words[0]);
            }
        }
    }

    private static List<String> lines(String file) throws IOException {
        try (InputStream in = Objects.requireNonNull(RoomsTest.class.getResourceAsStream(file))) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .toList();
        }
    }

    private static String top(JavaClass c) {
        String name = c.getName().substring(PACKAGE.length() + 1);
        int inner = name.indexOf('$');
        return inner < 0 ? name : name.substring(0, inner);
    }

    private static boolean isHere(JavaClass c) {
        return c.getPackageName().equals(PACKAGE) && !c.isArray();
    }

    @Test
    void eachClassStandsInOneRoom() {
        Set<String> all = new TreeSet<>();
        CLASSES.stream().filter(RoomsTest::isHere).map(RoomsTest::top).forEach(all::add);
        all.remove("package-info");
        assertThat(new TreeSet<>(rooms.keySet())).isEqualTo(all);
    }

    @Test
    void noneRefersToARoomAboveItsOwn() throws IOException {
        Set<String> upwards = new TreeSet<>();
        for (JavaClass from : CLASSES) {
            if (isHere(from) && rooms.containsKey(top(from))) {
                from.getDirectDependenciesFromSelf().forEach(each -> {
                    JavaClass to = each.getTargetClass().getBaseComponentType();
                    if (isHere(to) && rooms.containsKey(top(to)) && isForbidden(top(from), top(to))) {
                        upwards.add(top(from) + " -> " + top(to));
                    }
                });
            }
        }
        assertThat(upwards).isEqualTo(new TreeSet<>(lines("rooms-upwards.txt")));
    }

    private boolean isForbidden(String from, String to) {
        String below = Objects.requireNonNull(rooms.get(from));
        String above = Objects.requireNonNull(rooms.get(to));
        return order.indexOf(above) > order.indexOf(below) || ASIDE.contains(below + " -> " + above);
    }
}
