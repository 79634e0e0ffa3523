package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;

/**
 * Each package is a room, and refers to no room above its own. Packages {@code dev.rpcx} and {@code dev.rpcx.testing}
 * have two layers each: the vocabulary, which every room above the first ones may use, and the doors, which put the
 * rooms together and which no room knows.
 */
class RoomsTest {
    private static final String ROOT = "dev.rpcx";

    /** Rooms from below to above, by what follows the name of the root package. */
    private static final List<String> ORDER = List.of(
            ".schema",
            ".internal.schema",
            ".codec",
            ".internal",
            "",
            ".testing",
            ".internal.ledger",
            ".internal.io",
            ".internal.wire",
            ".internal.call",
            ".internal.discovery",
            ".internal.client",
            ".internal.server",
            "doors",
            ".processor",
            ".tool");

    private static final Set<String> DOORS =
            Set.of("/CallLog", "/Client", "/RegistryServer", "/Server", "/Tls", "/Tokens", ".testing/FaultyLink");

    /** What may not be referred to although it does not stand above. */
    private static final Set<String> ASIDE =
            Set.of(".internal.server -> .internal.client", ".internal.server -> .internal.discovery");

    /** Static methods of the vocabulary that make what they return: the only references that go upwards. */
    private static final Set<String> FACTORIES = Set.of(
            "CallContext -> CurrentCall",
            "Endpoints -> DnsQuestion",
            "Endpoints -> EndpointsDns",
            "Endpoints -> EndpointsFixed");

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages(ROOT);

    private static boolean isOurs(JavaClass c) {
        return c.getPackageName().startsWith(ROOT);
    }

    private static String top(JavaClass c) {
        String name = c.getName().substring(c.getPackageName().length() + 1);
        int inner = name.indexOf('$');
        return inner < 0 ? name : name.substring(0, inner);
    }

    /** A door is known by its package, too: a class of a room that has a door's name is none. */
    private static boolean isDoor(JavaClass c) {
        return DOORS.contains(c.getPackageName().substring(ROOT.length()) + "/" + top(c));
    }

    private static String room(JavaClass c) {
        return isDoor(c) ? "doors" : c.getPackageName().substring(ROOT.length());
    }

    private static boolean isForbidden(String below, String above) {
        return ORDER.indexOf(above) > ORDER.indexOf(below) || ASIDE.contains(below + " -> " + above);
    }

    @Test
    void eachPackageIsARoomThatIsCheckedForNulls() throws ClassNotFoundException {
        Set<String> packages = new TreeSet<>();
        for (JavaClass c : CLASSES) {
            packages.add(c.getPackageName().substring(ROOT.length()));
        }
        Set<String> rooms = new TreeSet<>(ORDER);
        rooms.remove("doors");
        assertThat(packages).isEqualTo(rooms);
        for (String room : rooms) {
            assertThat(Class.forName(ROOT + room + ".package-info").isAnnotationPresent(NullMarked.class))
                    .as("@NullMarked of package " + ROOT + room)
                    .isTrue();
        }
    }

    @Test
    void noneRefersToARoomAboveItsOwn() {
        Set<String> upwards = new TreeSet<>();
        for (JavaClass from : CLASSES) {
            from.getDirectDependenciesFromSelf().forEach(each -> {
                JavaClass to = each.getTargetClass().getBaseComponentType();
                if (isOurs(to) && isForbidden(room(from), room(to))) {
                    upwards.add(top(from) + " -> " + top(to));
                }
            });
        }
        assertThat(upwards).isEqualTo(new TreeSet<>(FACTORIES));
    }

    @Test
    void theDoorsAreThere() {
        Set<String> tops = new TreeSet<>();
        for (JavaClass c : CLASSES) {
            tops.add(c.getPackageName().substring(ROOT.length()) + "/" + top(c));
        }
        assertThat(tops).containsAll(DOORS);
    }
}
