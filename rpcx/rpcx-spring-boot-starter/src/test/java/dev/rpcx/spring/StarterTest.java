package dev.rpcx.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.spring.conditional.Conditional;
import dev.rpcx.spring.elsewhere.Elsewhere;
import dev.rpcx.spring.made.Made;
import dev.rpcx.spring.proxied.Proxied;
import dev.rpcx.spring.restarted.Restarted;
import dev.rpcx.spring.scoped.Scoped;
import dev.rpcx.spring.twice.Twice;
import java.io.File;
import java.io.IOException;
import java.net.ConnectException;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.aot.generate.ClassNameGenerator;
import org.springframework.aot.generate.DefaultGenerationContext;
import org.springframework.aot.generate.GeneratedFiles;
import org.springframework.aot.generate.InMemoryGeneratedFiles;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.DependsOn;
import org.springframework.context.aot.ApplicationContextAotGenerator;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.core.io.support.SpringFactoriesLoader;
import org.springframework.javapoet.ClassName;

@Timeout(120)
class StarterTest {
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RPCXAutoConfiguration.class))
            .withPropertyValues("rpcx.server.host=127.0.0.1", "rpcx.server.port=0");

    private static int port(AssertableApplicationContext context) {
        return context.getBean(RPCXServing.class).port().orElseThrow();
    }

    /** Returns what Spring Boot prints where an application cannot start. */
    private static FailureAnalysis analysis(AssertableApplicationContext context) {
        Throwable failure = context.getStartupFailure();
        assertThat(failure).isNotNull();
        return SpringFactoriesLoader.forDefaultResourceLocation()
                .load(FailureAnalyzer.class, (type, name, notMadeHere) -> {})
                .stream()
                .filter(each -> each instanceof RPCXStartFailureAnalyzer)
                .map(each -> each.analyze(failure))
                .filter(java.util.Objects::nonNull)
                .findFirst()
                .orElseThrow(() -> new AssertionError(failure));
    }

    @Test
    void whatAMethodOfTheApplicationMakesIsNotMadeOnceMore() {
        runner.withUserConfiguration(Made.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context).hasSingleBean(Made.Greeter.class).hasSingleBean(Made.Found.class);
            assertThat(context.getBean(RPCXServing.class).services())
                    .containsExactlyInAnyOrder("greeter/how", "found/number");
            assertThat(context.getBean(Client.class)
                            .create(Made.GreeterClient.class, "127.0.0.1", port(context))
                            .how())
                    .isEqualTo("by a method");
            assertThat(context).hasSingleBean(Made.GreeterClient.class).hasSingleBean(Made.FoundClient.class);
            assertThat(context.getBean(Made.GreeterClient.class)).hasToString("GreeterClient at 10.0.0.1:10");
        });
    }

    @Test
    void aKeyThatNoClientHasIsRefused() {
        ApplicationContextRunner made = runner.withUserConfiguration(Made.class);
        made.withPropertyValues("rpcx.services.found=127.0.0.1:1")
                .run(context -> assertThat(
                                context.getBean(Made.FoundClient.class).toString())
                        .contains("127.0.0.1:1")
                        .doesNotContain("127.0.0.1:9"));
        made.withPropertyValues("rpcx.services.found=127.0.0.1:1", "rpcx.services.fuond=127.0.0.1:2")
                .run(context -> {
                    FailureAnalysis analysis = analysis(context);
                    assertThat(analysis.getDescription()).contains("rpcx.services.fuond", "found, greeter");
                    assertThat(analysis.getAction()).contains("rpcx.services[my/service]");
                });
        // without brackets, the slash in the name is lost
        made.withPropertyValues("rpcx.services.fou/nd=127.0.0.1:1")
                .run(context -> assertThat(context.getBean(RPCXProperties.class).services())
                        .containsOnlyKeys("found"));
        made.withPropertyValues("rpcx.services[fou/nd]=127.0.0.1:1")
                .run(context -> assertThat(analysis(context).getDescription()).contains("rpcx.services.fou/nd"));
    }

    @Test
    void aKeyOfAClientThatAConditionLeavesOutIsKept() {
        ApplicationContextRunner conditional = runner.withUserConfiguration(Conditional.class)
                .withPropertyValues(
                        "rpcx.services.always=127.0.0.1:1",
                        "rpcx.services.cloud=127.0.0.1:2",
                        "rpcx.services.conditional=127.0.0.1:3");
        conditional.run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBeanNamesForAnnotation(RPCXClient.class)).hasSize(1);
        });
        conditional
                .withPropertyValues("rpcx.services.clod=127.0.0.1:4", "spring.profiles.active=cloud")
                .run(context -> assertThat(analysis(context).getDescription())
                        .contains("rpcx.services.clod", "always, cloud, conditional"));
    }

    @Test
    void aKeyThatNoClientHasIsRefusedAtTheStartAlsoWhereBeansAreLazy() {
        runner.withUserConfiguration(Made.class)
                .withInitializer(context ->
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
                .withPropertyValues("rpcx.services.fuond=127.0.0.1:2")
                .run(context -> assertThat(analysis(context).getDescription()).contains("rpcx.services.fuond"));
    }

    @Test
    void packagesThatAPropertyNamesAreLookedThroughToo() {
        ApplicationContextRunner elsewhere =
                runner.withPropertyValues("rpcx.base-packages=dev.rpcx.spring.elsewhere", "rpcx.services.far=a:1");
        // an application without a package
        elsewhere.run(context -> {
            assertThat(context).hasSingleBean(Elsewhere.FarClient.class);
            assertThat(context.getBean(RPCXServing.class).services()).containsExactly("far/number");
        });
        elsewhere.withUserConfiguration(Made.class).run(context -> {
            assertThat(context).hasSingleBean(Elsewhere.FarClient.class).hasSingleBean(Made.FoundClient.class);
            assertThat(context.getBean(RPCXServing.class).services())
                    .containsExactlyInAnyOrder("far/number", "found/number", "greeter/how");
        });
    }

    @Test
    void aPackageWithNothingInItIsRefused() {
        runner.withUserConfiguration(Made.class)
                .withPropertyValues("rpcx.base-packages=dev.rpcx.spring.elsewhere,dev.rpcx.spring.elsewere")
                .run(context -> assertThat(analysis(context).getDescription())
                        .startsWith("rpcx.base-packages: dev.rpcx.spring.elsewere (expected: a package with"));
        // a condition may leave out all that is in a package
        runner.withPropertyValues(
                        "rpcx.base-packages=dev.rpcx.spring.conditional,dev.rpcx.spring.elsewhere",
                        "rpcx.services.cloud=a:1")
                .run(context -> assertThat(context).hasNotFailed());
    }

    /** Returns what Spring generates ahead of time for the application, compiled into this folder. */
    private static String generated(Class<?> application, Path folder) throws IOException {
        InMemoryGeneratedFiles files = new InMemoryGeneratedFiles();
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
            context.register(application, RPCXAutoConfiguration.class);
            DefaultGenerationContext generation =
                    new DefaultGenerationContext(new ClassNameGenerator(ClassName.get(application)), files);
            new ApplicationContextAotGenerator().processAheadOfTime(context, generation);
            generation.writeGeneratedContent();
        }
        StringBuilder all = new StringBuilder();
        List<String> compiled = new ArrayList<>(List.of("-proc:none", "-d", folder.toString()));
        for (String path : files.getGeneratedFiles(GeneratedFiles.Kind.SOURCE).keySet()) {
            String source = files.getGeneratedFileContent(GeneratedFiles.Kind.SOURCE, path);
            Path file = folder.resolve(path);
            Files.createDirectories(file.getParent());
            compiled.add(Files.writeString(file, source).toString());
            all.append(source);
        }
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, compiled.toArray(String[]::new)))
                .isZero();
        return all.toString();
    }

    @Test
    void codeAheadOfTimeIsGeneratedForServicesAndClients(@TempDir Path folder) throws IOException {
        assertThat(generated(Made.class, folder))
                .contains("List.of(\"found\", \"greeter\")", "\"dev.rpcx.spring.made.Made$FoundClient\"");
        // generated code may not see the clients of this application
        assertThat(generated(Conditional.class, folder))
                .contains("\"dev.rpcx.spring.conditional.Conditional$AlwaysClient\"");
    }

    @Test
    void aServiceThatIsThereTwiceIsToldWithTheNamesOfBoth() {
        runner.withUserConfiguration(Twice.class).run(context -> {
            FailureAnalysis analysis = analysis(context);
            assertThat(analysis.getDescription()).contains("same/number is published twice");
            assertThat(analysis.getAction()).contains(Twice.One.class.getName(), Twice.Two.class.getName());
        });
    }

    @RPCXClient(remoteServerName = "open")
    interface OpenClient {
        String pub();

        String prot();

        String pack();
    }

    @Test
    void anAspectStandsBeforeEachPublishedMethod() {
        runner.withBean(Proxied.Open.class)
                .withBean("aspect", BeanPostProcessor.class, () -> Proxied.aspect(true))
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    OpenClient client =
                            context.getBean(Client.class).create(OpenClient.class, "127.0.0.1", port(context));
                    for (Supplier<String> call :
                            java.util.List.<Supplier<String>>of(client::pub, client::prot, client::pack)) {
                        assertThatThrownBy(call::get)
                                .isInstanceOf(RPCXException.class)
                                .hasMessage("refused by the aspect");
                    }
                });
    }

    @Test
    void aMethodThatNoAspectCanStandBeforeIsRefusedAtTheStart() {
        runner.withBean("service", Proxied.Closed.class)
                .withBean("aspect", BeanPostProcessor.class, () -> Proxied.aspect(true))
                .run(context -> {
                    FailureAnalysis analysis = analysis(context);
                    assertThat(analysis.getDescription())
                            .contains("'service'", "Closed.priv (private)", "Closed.fin (final)", "Base.above (final)")
                            .doesNotContain("pub ");
                    assertThat(analysis.getAction()).contains("not final");
                });
        // no proxy stands before these methods
        runner.withBean(Proxied.Closed.class)
                .run(context -> assertThat(context.getBean(RPCXServing.class).services())
                        .contains("closed/priv", "closed/fin", "closed/above", "closed/pub"));
    }

    @Test
    void aProxyOfInterfacesIsRefusedAtTheStart() {
        runner.withBean("service", Proxied.Interfaces.class)
                .withBean("aspect", BeanPostProcessor.class, () -> Proxied.aspect(false))
                .run(context -> {
                    FailureAnalysis analysis = analysis(context);
                    assertThat(analysis.getDescription()).contains("'service'", "a proxy of its interfaces");
                    assertThat(analysis.getAction()).contains("spring.aop.proxy-target-class");
                });
    }

    @RPCXClient(remoteServerName = "scoped")
    interface ScopedClient {
        String field();
    }

    @Test
    void aServiceOfAScopeIsPublishedOnce() {
        runner.withUserConfiguration(Scoped.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean(Client.class)
                            .create(ScopedClient.class, "127.0.0.1", port(context))
                            .field())
                    .isEqualTo("its field");
        });
    }

    @Test
    void aLineSaysWhereTheServerListensAndWhatItPublishes() {
        List<String> lines = new CopyOnWriteArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord line) {
                lines.add(line.getLevel() + " " + line.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger("dev.rpcx.spring");
        logger.addHandler(handler);
        logger.setLevel(Level.INFO);
        try {
            runner.withUserConfiguration(Made.class)
                    .run(context -> assertThat(lines)
                            .containsExactly("INFO RPCX listens on port " + port(context) + ": "
                                    + String.join(
                                            ", ",
                                            context.getBean(RPCXServing.class).services())));
            lines.clear();
            runner.run(context -> assertThat(lines).as("nothing is published").isEmpty());
        } finally {
            logger.removeHandler(handler);
            logger.setLevel(null);
        }
    }

    /**
     * Loads RPCX and Netty anew, without Netty's classes for event loops of 4.2, as they are missing where Spring Boot
     * 3.5 chooses the version.
     */
    private static final class OlderNetty extends URLClassLoader {
        OlderNetty() throws IOException {
            super(classPath(), StarterTest.class.getClassLoader());
        }

        private static URL[] classPath() throws IOException {
            List<URL> urls = new ArrayList<>();
            for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
                urls.add(Path.of(entry).toUri().toURL());
            }
            return urls.toArray(new URL[0]);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("dev.rpcx.") && !name.startsWith("io.netty.")) {
                return super.loadClass(name, resolve);
            }
            if (name.startsWith("io.netty.channel.Io")) {
                throw new ClassNotFoundException(name);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        }
    }

    @Test
    void anApplicationWithAnOlderNettyIsToldWhatToSet() throws Exception {
        try (OlderNetty loader = new OlderNetty()) {
            new ApplicationContextRunner()
                    .withClassLoader(loader)
                    .withUserConfiguration(loader.loadClass(RPCXAutoConfiguration.class.getName()))
                    .run(context -> assertThat(context.getStartupFailure())
                            .hasStackTraceContaining(RPCXStartException.class.getName()
                                    + ": RPCX cannot use the Netty of this application: Netty ")
                            .hasStackTraceContaining(" has no io.netty.channel.IoHandlerFactory (expected: Netty 4"));
        }
        Throwable failure = catchThrowable(() -> RPCXStartException.checkingNetty(() -> {
            throw new IllegalStateException("Netty 4.1.128.Final has no …");
        }));
        FailureAnalysis analysis = new RPCXStartFailureAnalyzer().analyze(failure);
        assertThat(analysis).isNotNull();
        assertThat(analysis.getDescription()).contains("Netty 4.1.128.Final has no …");
        assertThat(analysis.getAction()).contains("netty.version", "io.netty:netty-bom");
    }

    /** Loads classes as devtools does: those of the application anew at each start, and those of libraries once. */
    private static final class Restart extends URLClassLoader {
        private static final String PACKAGE = Restarted.class.getPackageName() + ".";

        Restart() {
            super(
                    new URL[] {
                        Restarted.class.getProtectionDomain().getCodeSource().getLocation()
                    },
                    Restarted.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(PACKAGE)) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        }
    }

    @Test
    void classesAreThoseOfTheApplicationsClassLoader() throws Exception {
        for (int start = 0; start < 2; start++) {
            try (Restart loader = new Restart()) {
                runner.withClassLoader(loader)
                        .withUserConfiguration(loader.loadClass(Restarted.class.getName()))
                        .run(context -> {
                            assertThat(context).hasNotFailed();
                            assertThat(context.getBean(Supplier.class).get()).isEqualTo("called");
                        });
            }
        }
    }

    @RPCXClient(remoteServerName = "g", remoteServerAddress = "127.0.0.1", remoteServerDomain = 9)
    interface Somewhere {
        String hi();
    }

    private static RPCXDiscovery at(String host) {
        return service -> Endpoints.of(new Endpoint(host, 1));
    }

    @Test
    void oneDiscoveryIsAskedAndOfSeveralThePrimaryOne() {
        runner.withBean("one", RPCXDiscovery.class, () -> at("127.0.0.1"))
                .run(context -> assertThat(context.getBean(RPCXClients.class)
                                .create(Somewhere.class)
                                .toString())
                        .doesNotContain("127.0.0.1:9"));
        runner.withBean("one", RPCXDiscovery.class, () -> at("127.0.0.1"))
                .withBean("two", RPCXDiscovery.class, () -> at("127.0.0.2"))
                .run(context -> assertThat(context.getStartupFailure())
                        .hasRootCauseInstanceOf(NoUniqueBeanDefinitionException.class)
                        .rootCause()
                        .hasMessageContaining("one,two"));
        runner.withBean(
                        "one",
                        RPCXDiscovery.class,
                        () -> {
                            throw new AssertionError("asked");
                        },
                        definition -> definition.setLazyInit(true))
                .withBean("two", RPCXDiscovery.class, () -> at("127.0.0.2"), definition -> definition.setPrimary(true))
                .run(context -> assertThat(context).hasNotFailed());
        runner.run(context -> assertThat(context.getBean(RPCXClients.class).create(Somewhere.class))
                .hasToString("Somewhere at 127.0.0.1:9"));
    }

    private static final CountDownLatch BEGUN = new CountDownLatch(1);
    private static final CompletableFuture<String> RESULT = new CompletableFuture<>();

    @RPCXServer("slow")
    static class Slow {
        @Method
        CompletableFuture<String> slow() {
            BEGUN.countDown();
            return RESULT;
        }
    }

    @RPCXClient(remoteServerName = "slow")
    interface SlowClient {
        CompletableFuture<String> slow();
    }

    @Test
    void howTheServerIsCanBeAskedWhileItStops() {
        runner.withBean(Slow.class).withPropertyValues("rpcx.server.stop=60s").run(context -> {
            RPCXServing serving = context.getBean(RPCXServing.class);
            try (Client client = Client.standard()) {
                CompletableFuture<String> call = client.create(SlowClient.class, "127.0.0.1", port(context))
                        .slow();
                assertThat(BEGUN.await(30, TimeUnit.SECONDS)).isTrue();
                CompletableFuture<Void> stopped = CompletableFuture.runAsync(serving::stop);
                CompletableFuture<Void> asked = CompletableFuture.runAsync(() -> {
                    while (serving.isRunning() || serving.port().isPresent()) {
                        Thread.onSpinWait();
                    }
                });
                asked.get(30, TimeUnit.SECONDS);
                assertThat(stopped).isNotDone();
                RESULT.complete("served");
                assertThat(call.get(30, TimeUnit.SECONDS)).isEqualTo("served");
                stopped.get(30, TimeUnit.SECONDS);
            }
        });
    }

    /** Runs an application that fails once the server listens, and asserts that the server has stopped. */
    private void assertNoServerIsLeft(ApplicationContextRunner failing, AtomicInteger port) {
        failing.run(context -> {
            assertThat(context).hasFailed();
            assertThat(port).hasPositiveValue();
            assertThatThrownBy(() -> new Socket("127.0.0.1", port.get()).close())
                    .isInstanceOf(ConnectException.class);
        });
    }

    /** Begins after the server, and fails. */
    private record Late(RPCXServing serving, AtomicInteger port) implements SmartLifecycle {
        @Override
        public void start() {
            port.set(serving.port().orElseThrow());
            throw new IllegalStateException("injected");
        }

        @Override
        public void stop() {}

        @Override
        public boolean isRunning() {
            return false;
        }
    }

    @Test
    void anApplicationThatCannotStartLeavesNoServer() {
        AtomicInteger heard = new AtomicInteger();
        assertNoServerIsLeft(
                runner.withBean(Slow.class)
                        .withBean(
                                "late",
                                ApplicationListener.class,
                                () -> (ApplicationListener<ContextRefreshedEvent>) event -> {
                                    heard.set(event.getApplicationContext()
                                            .getBean(RPCXServing.class)
                                            .port()
                                            .orElseThrow());
                                    throw new IllegalStateException("injected");
                                }),
                heard);
        AtomicInteger begun = new AtomicInteger();
        assertNoServerIsLeft(
                runner.withBean(Slow.class)
                        .withUserConfiguration(LateBegin.class)
                        .withBean(AtomicInteger.class, () -> begun),
                begun);
    }

    @Configuration(proxyBeanMethods = false)
    static class LateBegin {
        @Bean
        @DependsOn("rpcxServing")
        SmartLifecycle late(RPCXServing serving, AtomicInteger port) {
            return new Late(serving, port);
        }
    }

    @Test
    void connectionsAreTheClientsOwnUnlessTheyAreSet() {
        runner.run(context -> assertThat(
                        (Object) context.getBean(RPCXProperties.class).client().connections())
                .isNull());
        runner.withPropertyValues("rpcx.client.connections=65")
                .run(context -> assertThat(context).getFailure().rootCause().hasMessageContaining("connections: 65"));
    }
}
