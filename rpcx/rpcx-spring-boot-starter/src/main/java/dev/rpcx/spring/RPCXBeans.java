package dev.rpcx.spring;

import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.annotation.AnnotatedBeanDefinition;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfigurationPackages;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.ClassPathScanningCandidateComponentProvider;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.core.type.filter.AnnotationTypeFilter;
import org.springframework.util.ClassUtils;

/** Looks through the application's packages: a bean for each {@code @RPCXServer} class that is none yet, and for each {@code @RPCXClient}. */
final class RPCXBeans implements ImportBeanDefinitionRegistrar, BeanFactoryAware, EnvironmentAware {
    private BeanFactory factory;
    private Environment environment;

    @SuppressWarnings("NullAway.Init") // Spring sets both before it calls
    RPCXBeans() {}

    @Override
    public void setBeanFactory(BeanFactory beanFactory) {
        factory = beanFactory;
    }

    @Override
    public void setEnvironment(Environment found) {
        environment = found;
    }

    @Override
    public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
        if (!AutoConfigurationPackages.has(factory)) {
            return;
        }
        Set<String> known = new HashSet<>();
        for (String name : registry.getBeanDefinitionNames()) {
            String type = registry.getBeanDefinition(name).getBeanClassName();
            if (type != null) {
                known.add(type);
            }
        }
        List<String> packages = AutoConfigurationPackages.get(factory);
        for (String each : packages) {
            for (BeanDefinition found : scanner().findCandidateComponents(each)) {
                String type = found.getBeanClassName();
                if (type != null && known.add(type)) {
                    register(type, (AnnotatedBeanDefinition) found, registry);
                }
            }
        }
    }

    private void register(String name, AnnotatedBeanDefinition found, BeanDefinitionRegistry registry) {
        if (found.getMetadata().isInterface()) {
            Class<?> type = ClassUtils.resolveClassName(name, getClass().getClassLoader());
            registry.registerBeanDefinition(name, proxy(type));
        } else {
            registry.registerBeanDefinition(name, found);
        }
    }

    private <T> BeanDefinition proxy(Class<T> type) {
        RootBeanDefinition definition = new RootBeanDefinition(
                type, () -> factory.getBean(RPCXClients.class).create(type));
        definition.setLazyInit(true);
        return definition;
    }

    private ClassPathScanningCandidateComponentProvider scanner() {
        ClassPathScanningCandidateComponentProvider scanner =
                new ClassPathScanningCandidateComponentProvider(false, environment) {
                    @Override
                    protected boolean isCandidateComponent(AnnotatedBeanDefinition found) {
                        AnnotationMetadata type = found.getMetadata();
                        return type.isIndependent() && (type.isInterface() || type.isConcrete());
                    }
                };
        scanner.addIncludeFilter(new AnnotationTypeFilter(RPCXClient.class, false));
        scanner.addIncludeFilter(new AnnotationTypeFilter(RPCXServer.class, false));
        return scanner;
    }
}
