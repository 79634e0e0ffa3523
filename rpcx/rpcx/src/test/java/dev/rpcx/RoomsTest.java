package dev.rpcx;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import com.tngtech.archunit.library.dependencies.SliceRule;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;

/**
 * Tests that each package is a room, and refers to no room above its own. The packages {@code dev.rpcx} and
 * {@code dev.rpcx.testing} have two layers each. One layer is the vocabulary, which every room above the first ones may
 * use. The other one is the doors, which put the rooms together, and which no room knows.
 */
class RoomsTest {
    private static final String ROOT = "dev.rpcx";

    /**
     * The rooms are listed from the lowest to the highest. Each is given by what follows the name of the root package.
     */
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

    private static final Set<String> DOORS = Set.of(
            "dev.rpcx.CallLog",
            "dev.rpcx.Client",
            "dev.rpcx.Publishers",
            "dev.rpcx.RegistryServer",
            "dev.rpcx.Server",
            "dev.rpcx.Tls",
            "dev.rpcx.Tokens",
            "dev.rpcx.testing.FaultyLink");

    /** These references are forbidden although the second package does not stand above the first one. */
    private static final Set<String> ASIDE =
            Set.of(".internal.server -> .internal.client", ".internal.server -> .internal.discovery");

    /**
     * Only these classes refer upwards. Each is listed with the classes to which it refers. They belong to the
     * vocabulary and have static methods that users call: these return the context of the running call, and lists of
     * instances, whose classes stand in rooms.
     */
    private static final Map<String, Set<String>> FACTORIES = Map.of(
            "dev.rpcx.CallContext",
            Set.of("dev.rpcx.internal.call.CurrentCall"),
            "dev.rpcx.Endpoints",
            Set.of(
                    "dev.rpcx.internal.discovery.DnsQuestion",
                    "dev.rpcx.internal.discovery.EndpointsDns",
                    "dev.rpcx.internal.discovery.EndpointsFixed"));

    private static final SliceAssignment BY_ROOM = new SliceAssignment() {
        @Override
        public SliceIdentifier getIdentifierOf(JavaClass c) {
            return isOurs(c) ? SliceIdentifier.of("room " + room(c)) : SliceIdentifier.ignore();
        }

        @Override
        public String getDescription() {
            return "rooms";
        }
    };

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages(ROOT);

    private static boolean isOurs(JavaClass c) {
        return c.getPackageName().startsWith(ROOT);
    }

    /** Returns the full name of the class, or of the class in which it is nested. */
    private static String top(JavaClass c) {
        String name = c.getName();
        int inner = name.indexOf('$');
        return inner < 0 ? name : name.substring(0, inner);
    }

    private static DescribedPredicate<JavaClass> isTop(String name) {
        return DescribedPredicate.describe(name, c -> top(c).equals(name));
    }

    private static String room(JavaClass c) {
        return DOORS.contains(top(c)) ? "doors" : c.getPackageName().substring(ROOT.length());
    }

    private static boolean isForbidden(String below, String above) {
        return ORDER.indexOf(above) > ORDER.indexOf(below) || ASIDE.contains(below + " -> " + above);
    }

    /** Returns the classes that a package uses, without its own, the JDK's and all annotations. */
    private static Set<String> used(String packageName) {
        Set<String> names = new TreeSet<>();
        for (JavaClass from : CLASSES) {
            if (from.getPackageName().equals(packageName)) {
                from.getDirectDependenciesFromSelf().forEach(each -> {
                    JavaClass to = each.getTargetClass().getBaseComponentType();
                    boolean isOther = !to.getPackageName().equals(packageName)
                            && !to.getPackageName().startsWith("java.")
                            && !to.getPackageName().startsWith("javax.");
                    if (isOther && !to.isPrimitive() && !to.isAnnotation()) {
                        names.add(top(to));
                    }
                });
            }
        }
        return names;
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
        Map<String, Set<String>> upwards = new TreeMap<>();
        for (JavaClass from : CLASSES) {
            from.getDirectDependenciesFromSelf().forEach(each -> {
                JavaClass to = each.getTargetClass().getBaseComponentType();
                if (isOurs(to) && isForbidden(room(from), room(to))) {
                    upwards.computeIfAbsent(top(from), name -> new TreeSet<>()).add(top(to));
                }
            });
        }
        assertThat(upwards).isEqualTo(FACTORIES);
    }

    /** The doors are a room of their own here, which refers to all others and to which none refers. */
    @Test
    void noRoomsReferToEachOtherInACircle() {
        SliceRule rule = slices().assignedFrom(BY_ROOM).should().beFreeOfCycles();
        for (Map.Entry<String, Set<String>> factory : FACTORIES.entrySet()) {
            for (String made : factory.getValue()) {
                rule = rule.ignoreDependency(isTop(factory.getKey()), isTop(made));
            }
        }
        rule.check(CLASSES);
    }

    @Test
    void theProcessorNeedsNothingButAnnotationsAndNames() {
        assertThat(used("dev.rpcx.processor"))
                .isSubsetOf(
                        "dev.rpcx.internal.schema.Accessors",
                        "dev.rpcx.internal.schema.Cases",
                        "dev.rpcx.internal.schema.ErrorType",
                        "dev.rpcx.internal.schema.ParameterNumbers",
                        "dev.rpcx.internal.schema.Refusals");
    }

    @Test
    void theToolKnowsNeitherACodecNorAConnection() {
        assertThat(used("dev.rpcx.tool"))
                .allMatch(name -> name.startsWith("dev.rpcx.schema.")
                        || name.startsWith("dev.rpcx.internal.schema.")
                        || name.equals("dev.rpcx.internal.call.PublishedMethod")
                        || name.equals("dev.rpcx.internal.call.Streams"));
    }

    @Test
    void theLedgerKnowsOfNettyOnlyTheEventLoop() {
        assertThat(used("dev.rpcx.internal.ledger"))
                .filteredOn(name -> name.startsWith("io.netty."))
                .containsExactly("io.netty.channel.EventLoop");
    }

    @Test
    void onlyCloseWatchReliesOnTheInternalsOfNettysEpollTransport() {
        Set<String> internals = Set.of(
                "io.netty.channel.IoEvent",
                "io.netty.channel.IoHandle",
                "io.netty.channel.IoHandler",
                "io.netty.channel.IoHandlerContext",
                "io.netty.channel.IoOps",
                "io.netty.channel.IoRegistration",
                "io.netty.channel.epoll.EpollIoHandle",
                "io.netty.channel.epoll.EpollIoHandler",
                "io.netty.channel.epoll.EpollIoOps",
                "io.netty.channel.unix.FileDescriptor",
                "io.netty.channel.unix.Socket");
        Set<String> users = new TreeSet<>();
        for (JavaClass from : CLASSES) {
            from.getDirectDependenciesFromSelf().forEach(each -> {
                if (internals.contains(
                        each.getTargetClass().getBaseComponentType().getName())) {
                    users.add(top(from));
                }
            });
        }
        assertThat(users).containsExactly("dev.rpcx.internal.io.CloseWatch");
    }

    @Test
    void theDoorsAreThere() {
        Set<String> tops = new TreeSet<>();
        for (JavaClass c : CLASSES) {
            tops.add(top(c));
        }
        assertThat(tops).containsAll(DOORS);
    }
}
